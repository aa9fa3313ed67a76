/* mean_api: the public declarations of the front door, a mean with memory in five lines and one line of text

   Offers   cg_mean and the calls on it; cg_tensor
   Needs    api
   Touches  nothing */

#ifndef COMPGRAD_EF_MEAN_H
#define COMPGRAD_EF_MEAN_H

/* A compressed mean over ranks of a list of tensors, with its memory. It lives in your memory, in one block. */
typedef struct cg_mean cg_mean;

/* A tensor of the list, for cg_mean_open_of: all that is 0 is not known. */
typedef struct cg_tensor {
    const char *name; /* in sentences and saved states; NULL: its index. It is copied */
    size_t n;         /* values; 0: the tensor takes part in nothing */
    size_t rows;      /* of a matrix of n / rows columns, row by row; 0 or 1: a vector */
} cg_tensor;

/* Bytes of mem that cg_mean_open needs on this rank, for any step; 0: refused, and why[0..cap) has a sentence that says
   what is wrong and where. config: one line, see CONFIGURATIONS above; NULL or "": the default. n: values of every
   tensor. It sends nothing. why may be NULL. */
CG_API_ size_t cg_mean_memory(
    const char *config, const size_t *n, size_t tensors, const cg_transport *transport, char *why, size_t cap);
/* Makes a mean in mem, which may have any alignment and must stay in place; config, n and transport are copied. It
   sends nothing, and whatever it accepts can step: a configuration that no step could take is refused here (CG_E_ARG
   or CG_E_UNSUPPORTED). *mean is set also after an error, if mem has room for a sentence (1 KB): then cg_mean_why has
   it, and a step returns CG_E_STATE. Of memory from malloc *mean
   is the address, so that either may be freed. */
CG_API_ CG_CHECKED_ cg_status cg_mean_open(cg_mean **mean, const char *config, const size_t *n, size_t tensors,
    const cg_transport *transport, void *mem, size_t bytes);
/* The same with names and shapes of the tensors, which matrix operators like lowrank:4 need. */
CG_API_ size_t cg_mean_memory_of(
    const char *config, const cg_tensor *list, size_t tensors, const cg_transport *transport, char *why, size_t cap);
CG_API_ CG_CHECKED_ cg_status cg_mean_open_of(cg_mean **mean, const char *config, const cg_tensor *list, size_t tensors,
    const cg_transport *transport, void *mem, size_t bytes);

/* grads[i][0..n[i]) := the mean over ranks of tensor i (or whatever fold= says), and the memory keeps what was not
   sent. Every rank calls it. All or nothing: after an error gradients, memory and the number of steps are as before
   the call, on this rank, and the same call, also with newer gradients, is a good next one. All ranks get an error, or
   none does, unless a message of the closing round is lost; then the next step is CG_E_MISMATCH on all ranks, until
   all have called cg_mean_agree. grads[i] of a tensor without values may be NULL. */
CG_API_ CG_CHECKED_ cg_status cg_mean_step(cg_mean *mean, float *const *grads);
/* The same where the tensors lie one behind the other in one vector. */
CG_API_ CG_CHECKED_ cg_status cg_mean_step_flat(cg_mean *mean, float *grads);
/* The same with the variances of memory=variance: variances[i] is n[i] floats. */
CG_API_ CG_CHECKED_ cg_status cg_mean_step_with(cg_mean *mean, float *const *grads, const float *const *variances);

/* A step message by message, to compute while messages travel: for a mean that was opened with overlap=yes, which
   takes n floats more for each tensor. cg_mean_start moves no message and reads no gradient; then call cg_mean_next
   until it returns something other than CG_AGAIN, and move the message *io after each CG_AGAIN, as for
   cg_exchange_next. Tensors have their turn in the order of the list, and grads[i] is read when its turn comes, which
   is after the messages of all before it: it may be written until then. Results appear when the last of them is in.
   All or nothing, and the floats, are as of cg_mean_step; all ranks must take the same of the two. The blocking form:
   while ((s = cg_mean_next(m, code, &io)) == CG_AGAIN) code = cg_io_run(&net, &io); */
CG_API_ CG_CHECKED_ cg_status cg_mean_start(cg_mean *mean, float *const *grads);
CG_API_ CG_CHECKED_ cg_status cg_mean_next(cg_mean *mean, int last_code, cg_io *io);

/* After CG_E_MISMATCH because a step was committed on some ranks only: makes the numbers of steps equal, that of the
   rank that has most, and H and M of kinds that have them, as cg_ef_agree does. Every rank must call it. Residuals
   stay each rank's own. The model is yours: copy it from a rank that has taken the step. After an error call it again.
   */
CG_API_ CG_CHECKED_ cg_status cg_mean_agree(cg_mean *mean);

/* The last call that failed, as a sentence with what, where and what to do; "ok" after one that did not. It lives in
   the object, until the next call. mean may be NULL. */
CG_API_ const char *cg_mean_why(const cg_mean *mean);
/* How the last step went: status, bytes and rounds, the route if all tensors took one; used is NULL. */
CG_API_ void cg_mean_report(const cg_mean *mean, cg_report *report);
/* Steps that have succeeded, also before the state was saved. */
CG_API_ uint64_t cg_mean_steps(const cg_mean *mean);
/* Writes, with a final 0, a configuration that opens the same mean again, and then, in lines that begin with '#', what
   happens to every tensor; all of it may be given to cg_mean_open. CG_E_CAPACITY: it was cut off; 400 bytes and 200 for
   each tensor suffice. */
CG_API_ CG_CHECKED_ cg_status cg_mean_describe(const cg_mean *mean, char *text, size_t cap);
/* The state of tensor i, to look at; NULL: it has no values, or mean is not open. */
CG_API_ const cg_ef *cg_mean_state(const cg_mean *mean, size_t tensor);
/* memory=laq, after every update of the model: squared = |tensor after - tensor before|^2. */
CG_API_ CG_CHECKED_ cg_status cg_mean_moved(cg_mean *mean, size_t tensor, double squared);

/* Bytes that cg_mean_save writes; 0: mean is not open. */
CG_API_ size_t cg_mean_save_bytes(const cg_mean *mean);
/* Writes the state of this rank, with configuration, steps and the names of all tensors, to buf[0..*len). */
CG_API_ CG_CHECKED_ cg_status cg_mean_save(const cg_mean *mean, void *buf, size_t cap, size_t *len);
/* Restores a state that this rank has saved, into a mean that was opened in the same way; buf may be any bytes.
   CG_E_MISMATCH: tensors, their names, memory or number of ranks are others. After an error nothing has changed. */
CG_API_ CG_CHECKED_ cg_status cg_mean_load(cg_mean *mean, const void *buf, size_t len);
/* The same for another number of ranks: every rank loads the mean of the states of all ranks that saved, so that what
   has not been sent stays the same in the mean over ranks. */
CG_API_ CG_CHECKED_ cg_status cg_mean_load_mean(
    cg_mean *mean, const void *const *bufs, const size_t *lens, size_t count);
/* The same for other tensors, of as many values in all (say, other buckets of one model): the states of all tensors,
   one behind the other, are cut anew, and what has not been sent stays in its place. count is 1, for the state of this
   rank, or that of all ranks that saved. The start of low-rank iterations and thresholds are forgotten. */
CG_API_ CG_CHECKED_ cg_status cg_mean_load_moved(
    cg_mean *mean, const void *const *bufs, const size_t *lens, size_t count);

#endif /* COMPGRAD_EF_MEAN_H */
