/* The implementation alone, as a user would have it in a file of its own: the last headers bring those before them. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
#include "compgrad_sketch.h"
#include "compgrad_sync.h"
