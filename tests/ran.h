/* For tests whose ranks are threads, after greatest.h and examples/transport_threads.h. */
#ifndef RAN_H
#define RAN_H

/* In a rank's function: the line of what is wrong becomes its code, and so that of cg_threads_run. */
#define NEED(cond)                        \
  do {                                    \
    if (!(cond)) return 10000 + __LINE__; \
  } while (0)
#define ASSERT_RAN(size, fn, job)                \
  do {                                           \
    int ran_ = cg_threads_run(size, fn, job);    \
    ASSERT_EQ_FMT(0, ran_, "%d (10000 + line)"); \
  } while (0)

#endif
