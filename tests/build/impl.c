/* The implementation alone, as a user would have it in a file of its own: the last header brings those before it. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad_ef.h"
