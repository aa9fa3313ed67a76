/* mpicc -O2 -I. examples/adam_mpi.c -o adam_mpi -lm && mpirun --allow-run-as-root --oversubscribe -n 4 adam_mpi

   What adam.c does, with ranks of MPI in place of threads: dense gradients, top-k with error feedback, and models under
   AdamW. The two options are Open MPI's, for root in a container and for fewer cores than ranks; MPICH has neither, and
   needs none. */

#define COMPGRAD_IMPLEMENTATION
#define ADAM_MPI
#include "adam.c"
