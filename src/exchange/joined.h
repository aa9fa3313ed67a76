/* joined: low-rank layers share the sum of their left factors, and that of their right ones

   Offers   cg_joined_, cg_joined_add_, cg_joined_plan_, cg_joined_run_, cg_collective_wait_
   Needs    exchange, memory (bounces), sums
   Touches  the joined exchanges and the one that opens them, the joined buffers
   The order of a sum does not depend on where a value stands, so that each layer has the bits that it has alone. On a
   ring it does: such layers are not joined. */

typedef struct cg_joined_ {
    size_t count;         /* of exchanges; 1: none is joined */
    uint64_t left, right; /* floats of all their factors */
    uint32_t sum;         /* of the first: the others have the same */
    double alpha, beta;   /* likewise */
    float *floats;        /* in mem: left or right ones, whichever are more */
    uint8_t *bounce;      /* in mem: for their sum */
    uint64_t bounce_bytes;
} cg_joined_;
/* May an exchange be joined with those before it? Its plan has been resolved. */
static int cg_may_join_(const cg_joined_ *j, const cg_ex_ *ex) {
    const cg_exchange_desc *d = &ex->desc;
    if (ex->status != CG_OK || !cg_route_has_(ex, CG_ROUTE_ALLREDUCES_) || !(ex->plan.traits & CG_IS_MATRIX_)) return 0;
    return d->sum != CG_SUM_RING && (!j->count || (d->sum == j->sum && d->alpha == j->alpha && d->beta == j->beta));
}
static void cg_joined_add_(cg_joined_ *j, const cg_ex_ *ex) {
    if (!cg_may_join_(j, ex)) return;
    j->count++;
    j->sum = ex->desc.sum;
    j->alpha = ex->desc.alpha;
    j->beta = ex->desc.beta;
    j->left = cg_add_sat_(j->left, ex->plan.left_floats);
    j->right = cg_add_sat_(j->right, ex->plan.transformed_n - ex->plan.left_floats);
}
/* Floats that are summed at once, at most; the places of them and of the bounce buffer. */
static void cg_joined_plan_(cg_joined_ *j, const cg_transport *t, cg_arena_ *arena) {
    cg_ex_ ex;
    const uint64_t floats = j->left > j->right ? j->left : j->right;
    if (j->count < 2) return;
    memset(&ex, 0, sizeof ex);
    ex.transport = *t;
    ex.desc.sum = j->sum;
    ex.desc.alpha = j->alpha;
    ex.desc.beta = j->beta;
    j->bounce_bytes = cg_sum_bounce_of_(&ex, j->left);
    cg_max_update_(&j->bounce_bytes, cg_sum_bounce_of_(&ex, j->right));
    j->bounce_bytes = cg_bounce_room_of_(&ex, j->bounce_bytes);
    j->floats = (float *)(void *)cg_arena_take_(arena, cg_mul_sat_(4, floats));
    j->bounce = cg_arena_take_(arena, j->bounce_bytes);
}
/* Moves the collective that was begun, by the callbacks, until it is complete or one of them fails. */
static cg_status cg_collective_wait_(cg_ex_ *ex) {
    for (;;) {
        const cg_fenv_ env = cg_fenv_enter_();
        const int more = ex->collective.kind && cg_collective_next_(ex, &ex->co.io);
        int code;
        cg_fenv_leave_(env);
        if (!more) break;
        code = cg_io_run(&ex->transport, &ex->co.io);
        if (code) {
            ex->co.io_pending = 1;
            return cg_ex_next_(ex, code, &ex->co.io);
        }
        cg_count_io_(ex);
    }
    ex->collective.kind = CG_COLL_NONE_;
    return ex->status;
}
/* Goes on with a joined exchange until it asks for a sum (1), or has ended (0). */
static int cg_joined_resume_(cg_ex_ *ex) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_status s;
    ex->collective.kind = CG_COLL_NONE_;
    s = cg_ex_resume_(ex);
    if (s != CG_AGAIN && !(ex->desc.flags & CG_CONFIRM && ex->co.phase == CG_PHASE_CLOSING_)) s = cg_ex_finish_(ex, s);
    cg_fenv_leave_(env);
    return s == CG_AGAIN;
}
/* All joined exchanges, from behind the opening to their end. Returns CG_E_TRANSPORT if a callback has failed: then
   none has ended. All ranks sum the same number of floats, also for an exchange that has ended before: NaN. */
static cg_status cg_joined_run_(const cg_joined_ *j, cg_ex_ *opening, cg_ex_ *exchanges, size_t count) {
    cg_status s = CG_OK;
    if (j->count < 2) return CG_OK;
    for (size_t e = 0; e < count; e++) exchanges[e].opening.joined = cg_may_join_(j, &exchanges[e]);
    opening->desc.sum = j->sum;
    opening->desc.alpha = j->alpha;
    opening->desc.beta = j->beta;
    opening->mem.bounce = j->bounce;
    opening->mem.bounce_bytes = (size_t)j->bounce_bytes;
    for (int leg = 0; leg < 2 && s != CG_E_TRANSPORT; leg++) { /* left factors, right ones */
        size_t at = 0;
        for (size_t e = 0; e < count; e++) {
            cg_ex_ *ex = &exchanges[e];
            const size_t left = ex->plan.left_floats, many = leg ? (size_t)ex->plan.transformed_n - left : left;
            if (!ex->opening.joined) continue;
            if ((leg == 0 || ex->collective.kind) && cg_joined_resume_(ex))
                memcpy(j->floats + at, ex->collective.buf, 4 * many);
            else memset(j->floats + at, 0xff, 4 * many);
            at += many;
        }
        cg_allreduce_begin_(opening, j->floats, at);
        s = cg_collective_wait_(opening);
        at = 0;
        for (size_t e = 0; e < count; e++) {
            cg_ex_ *ex = &exchanges[e];
            const size_t left = ex->plan.left_floats, many = leg ? (size_t)ex->plan.transformed_n - left : left;
            if (!ex->opening.joined) continue;
            if (ex->collective.kind) memcpy(ex->collective.buf, j->floats + at, 4 * many);
            at += many;
        }
    }
    for (size_t e = 0; e < count && s != CG_E_TRANSPORT; e++)
        if (exchanges[e].opening.joined && exchanges[e].collective.kind) cg_joined_resume_(&exchanges[e]);
    return s;
}
