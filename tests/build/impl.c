/* The implementation alone, as a user would have it in a file of its own. */
#define COMPGRAD_IMPLEMENTATION
#include "compgrad.h"
