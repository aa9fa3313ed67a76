/* laq: LAQ sends a packet only where it moves the model enough

   Offers   cg_ef_laq_should_send_; cg_ef_packet_open_; the sinks cg_ef_energy_dense_ and cg_ef_energy_sparse_; the
            public cg_ef_moved
   Needs    step; decoding into a sink of core
   Touches  ef->error; cg_ef_moved the ring of the last ten moves */

/* Sinks for decoded values; user is a cg_ef_step_. The first two return |v|^2. */
static double cg_ef_energy_dense_(const void *user, size_t first, size_t many, const float *v) {
    (void)first;
    return cg_energy_(((const cg_ef_step_ *)user)->kernels, v, many);
}
static double cg_ef_energy_sparse_(const void *user, const uint64_t *index, size_t many, const float *v) {
    (void)index;
    return cg_ef_energy_dense_(user, 0, many, v);
}
/* |p - v|^2 - |p|^2 over these coordinates: added to |p|^2 it gives the error of a packet, dense or sparse. */
CG_NOINLINE_ double cg_ef_error_dense_(const void *user, size_t first, size_t many, const float *v) {
    const cg_ef_step_ *st = (const cg_ef_step_ *)user;
    float p[CG_CHUNK_];
    double sum = 0.0;
    for (size_t i = 0, some; i < many; i += some) {
        some = cg_min_(CG_CHUNK_, many - i);
        cg_ef_compensate_(st, first + i, some, p);
        sum -= cg_energy_(st->kernels, p, some);
        CG_KERNEL_(st->kernels, axpby(cg_at_(v, i), some, -1.0f, 1.0f, p, 0));
        sum += cg_energy_(st->kernels, p, some);
    }
    return sum;
}
static double cg_ef_error_sparse_(const void *user, const uint64_t *index, size_t many, const float *v) {
    double sum = 0.0;
    for (size_t i = 0; i < many; i++) sum += cg_ef_error_dense_(user, (size_t)index[i], 1, v + i);
    return sum;
}
/* Opens the packet at the beginning of p[0, len), which has at most n values; verify: 0 if it has been verified. */
static cg_status cg_ef_packet_open_(
    cg_decoder_ *d, const cg_extra *side, const uint8_t *p, size_t len, size_t n, int verify) {
    const cg_status s = cg_packet_header_(d, p, len, NULL, NULL);
    if (s != CG_OK) return s;
    if (d->info.n > n) return CG_E_MISMATCH;
    if (d->info.packet_bytes > len) return CG_E_CORRUPT;
    return cg_packet_open_(d, side, p, d->info.packet_bytes, verify);
}
/* The sum of what a pair of sinks returns for the values of a packet that this step has made. */
static double cg_ef_packet_reduce_(const cg_ef_step_ *st, const void *packet, size_t len,
    double (*dense)(const void *, size_t, size_t, const float *),
    double (*sparse)(const void *, const uint64_t *, size_t, const float *)) {
    cg_decoder_ d;
    cg_sink_ sink;
    cg_status s = cg_ef_packet_open_(&d, &st->side, (const uint8_t *)packet, len, st->ef->desc.n, 0);
    sink.take_dense = dense;
    sink.take_sparse = sparse;
    sink.user = st;
    sink.energy = 0.0;
    if (s == CG_OK) s = cg_packet_decode_(&d, &st->side, 1.0f, 1.0f, NULL, &sink, 1);
    return s == CG_OK ? sink.energy : 0.0;
}
/* Whether a packet is worth sending (Sun 19): |D|^2 >= weight/10 sum of |moved|^2 / step^2 + 3 (its error + the
   error when last sent), or nothing was sent for too long. put: |p|^2. ef->error becomes the packet's, |p - D|^2. */
static int cg_ef_laq_should_send_(cg_ef *ef, const cg_ef_step_ *st, double put, const void *packet, size_t len) {
    const cg_ef_desc *d = &ef->desc;
    const double weight = d->laq_weight != 0.0f ? (double)d->laq_weight : 0.8, step = (double)d->laq_step;
    const double sent = cg_ef_packet_reduce_(st, packet, len, cg_ef_energy_dense_, cg_ef_energy_sparse_);
    double model_moves = 0.0,
           error = put + cg_ef_packet_reduce_(st, packet, len, cg_ef_error_dense_, cg_ef_error_sparse_);
    ef->error = error > 0.0 ? error : 0.0;
    for (int i = 0; i < 10; i++) model_moves += ef->moved[i];
    if (ef->silent >= (d->laq_patience ? d->laq_patience : 100) || ef->steps == 0) return 1;
    return sent >= weight / 10.0 * model_moves / (step * step) + 3.0 * (ef->error + ef->error_sent);
}
CG_API_ cg_status cg_ef_moved(cg_ef *ef, double squared) {
    if (!ef || !(squared >= 0.0 && squared <= 1.7976931348623157e308)) return CG_E_ARG;
    ef->moved[ef->moves++ % 10] = squared;
    return CG_OK;
}
