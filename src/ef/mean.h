/* mean: a mean with memory, opened in one block of the caller's memory

   Offers   struct cg_mean; the public cg_mean_memory, cg_mean_open and their forms with shapes; cg_mean_say_,
            cg_mean_list_, cg_mean_tag_
   Needs    mean_words, plan, exchange; cg_exchange_resolve_ of exchange
   Touches  the caller's mem and sentence
   Whatever is accepted here can step: every operator that a step may have, the dense ones and those of the warm-up, is
   resolved on every tensor, as this rank and as rank 0, which may be a leader. */

enum { CG_MEAN_WHY_ = 512, CG_MEAN_MAGIC_ = 0x6e61656d /* "mean" */ };
/* The list of a caller: sizes, or tensors. */
typedef struct cg_mean_list_ {
    const size_t *n;
    const cg_tensor *tensor;
    size_t count;
} cg_mean_list_;
/* What is kept of a tensor. */
typedef struct cg_mean_tensor_ {
    size_t n, rows;
    const char *name; /* in the mean's memory; NULL: none */
    cg_ef *ef;        /* NULL: it has no values */
    cg_ef *before;    /* its state before the step that is tried */
    uint8_t *kept;    /* where the vectors of the state begin: what a step changes */
    uint8_t *backup;  /* and its vectors: kept_bytes from `kept` on */
    size_t kept_bytes;
    float *result; /* where the mean waits, of kinds whose commit may fail when it is there; else NULL */
} cg_mean_tensor_;
struct cg_mean {
    uint32_t magic; /* CG_MEAN_MAGIC_: open */
    int pending;
    cg_transport transport;
    cg_mean_config_ config;
    uint64_t common; /* hash of configuration and tensors */
    uint64_t steps;
    size_t tensors; /* of the list */
    size_t active;  /* of these, with values */
    cg_mean_tensor_ *tensor;
    float **flat; /* where tensors are in the vector of cg_mean_step_flat */
    cg_ef **efs;  /* of the active ones */
    cg_layer *layers;
    /* pack=: tensors are segments of one vector, with one state, which is that of the first tensor with values */
    size_t *pack_n;
    uint32_t *pack_op;
    cg_segments segments;
    float *packed;
    cg_extra *sides; /* of kinds that take variances, else NULL */
    /* overlap=yes: the step under way: of the caller, the state whose turn it is, and its exchange in mem */
    float *const *grads;
    cg_ef_exchange_ctx_ *ctx;
    cg_exchange_state *exchange; /* NULL: it has not begun */
    size_t turn;
    void *mem; /* for an exchange */
    size_t mem_bytes;
    cg_report report;
    char why[CG_MEAN_WHY_];
};

/* Bytes before the first multiple of 64 behind a cg_mean that stands at the first multiple of 16 of any memory:
   malloc's own address, so that either may be freed. */
enum { CG_MEAN_HEAD_ = sizeof(cg_mean) + 16 + 64 };

/* ---- sentences ---- */

static cg_text_ cg_mean_text_(char *text, size_t cap) {
    cg_text_ t;
    t.at = text;
    t.end = text && cap ? text + (cap - 1) : text; /* the 0 at the end always fits */
    return t;
}
static void cg_mean_tensor_name_(cg_text_ *t, size_t i, const char *name) {
    cg_text_str_(t, "tensor ");
    cg_text_uint_(t, i);
    if (!name) return;
    cg_text_str_(t, " (");
    for (size_t j = 0; name[j] && j < 40; j++) cg_text_char_(t, name[j] >= ' ' && name[j] <= '~' ? name[j] : '?');
    cg_text_char_(t, ')');
}
/* The sentence and the report of a call that ends so, and its status. */
static cg_status cg_mean_say_(cg_mean *m, cg_status s, const char *why) {
    cg_text_ t = cg_mean_text_(m->why, sizeof m->why);
    cg_report_set_(&m->report, s, why, 0, CG_NO_INDEX);
    cg_text_str_(&t, why);
    *t.at = 0;
    return s;
}

/* ---- what a tensor needs ---- */

static size_t cg_mean_list_n_(const cg_mean_list_ *list, size_t i) {
    return list->tensor ? list->tensor[i].n : list->n[i];
}
static size_t cg_mean_list_rows_(const cg_mean_list_ *list, size_t i) {
    return list->tensor ? list->tensor[i].rows : 0;
}
static const char *cg_mean_list_name_(const cg_mean_list_ *list, size_t i) {
    return list->tensor ? list->tensor[i].name : NULL;
}
/* The description of a tensor's state, but for carry. A matrix operator takes the shape of the tensor, if its factors
   are smaller than that. */
static cg_ef_desc cg_mean_desc_(const cg_mean *m, size_t n, size_t rows) {
    const cg_mean_config_ *c = &m->config;
    cg_ef_desc d = c->ef;
    const uint64_t cols = rows ? n / rows : 0, r = c->op.transform.arg;
    d.op = c->op;
    d.n = n;
    d.workers = m->transport.size;
    if (!c->by_shape) return d;
    if (rows < 2 || cols < 2 || rows > UINT32_MAX || cols > 16777216 || cg_mul_sat_(r, cg_add_sat_(rows, cols)) >= n) {
        d.op = cg_dense();
        return d;
    }
    d.op.transform.size = (uint32_t)rows;
    d.op.transform.value = (float)cols;
    return d;
}
static cg_tag cg_mean_tag_(const cg_mean *m, uint64_t step, size_t tensor) {
    cg_tag tag = CG_ZERO;
    tag.seed = m->config.seed;
    tag.step = step;
    tag.tensor = (uint32_t)tensor;
    return tag;
}
static cg_exchange_desc cg_mean_exchange_desc_(const cg_mean *m, uint64_t step, size_t tensor) {
    cg_exchange_desc d = CG_ZERO;
    d.route = m->config.route;
    d.fold = m->config.fold;
    d.tag = cg_mean_tag_(m, step, tensor);
    d.flags = CG_CONFIRM | CG_TOGETHER;
    d.common = m->common;
    return d;
}
/* The i-th of the steps whose operators differ: the first of kinds that begin dense, those that are dense in any case,
   every stage of the warm-up, what follows. 0: there are no more. */
static int cg_mean_step_at_(const cg_mean *m, uint32_t i, uint64_t *step, int *begins) {
    const cg_ef_desc *d = &m->config.ef;
    const uint64_t period = d->warmup.period ? d->warmup.period : 1;
    *step = 0;
    *begins = 0;
    if (cg_ef_has_trait_(d, CG_EF_TAKES_MODELS_) && i-- == 0) return *begins = 1;
    if (d->dense_steps && i-- == 0) return 1;
    if (i > d->warmup.stages) return 0;
    *step = d->dense_steps + i * period;
    return 1;
}
/* A state that is not kept, for questions about the exchange of its steps. */
static void cg_mean_trial_(cg_ef *ef, const cg_ef_desc *d) {
    memset(ef, 0, sizeof *ef);
    ef->desc = *d;
    ef->scale = 1.0f;
    ef->mark = 1;
    ef->segments.segments = d->segments;
    if (d->carry) ef->carry = &ef->scale;
}
/* What the exchange of this step resolves to, on that rank, in *x. */
CG_NOINLINE_ uint64_t cg_mean_resolve_(
    const cg_mean *m, cg_ef *ef, uint64_t step, size_t tensor, int rank, int carry, cg_exchange_state *x) {
    const cg_exchange_desc desc = cg_mean_exchange_desc_(m, step, tensor);
    const cg_op op = cg_ef_op_(ef, &desc.tag);
    cg_exchange_desc d = cg_ef_step_desc_(ef, &desc, &op);
    cg_transport t = m->transport;
    cg_resolved_ resolved;
    cg_extra side = CG_ZERO;
    const float unread = 0.0f;
    t.rank = rank;
    d.flags |= CG_FEEDS_BACK;
    if (cg_ef_has_trait_(&ef->desc, CG_EF_MAY_BE_SILENT_)) d.flags |= CG_ABSTAIN;
    if (cg_op_traits_(&op) & CG_NEEDS_AUX_) {
        side.aux = &unread;
        d.side = &side;
    }
    if (carry) d.carry = &ef->scale;
    return cg_exchange_resolve_(x, &d, &t, ef->desc.n, &resolved, 0);
}
/* How that went: a function of its own, so that the state is not on the stack of what follows. */
CG_NOINLINE_ cg_report cg_mean_resolved_(const cg_mean *m, cg_ef *ef, uint64_t step, size_t tensor, int rank) {
    cg_exchange_state x;
    cg_report report;
    cg_mean_resolve_(m, ef, step, tensor, rank, 0, &x);
    report = x.report;
    report.status = (uint32_t)x.status;
    return report;
}
/* Floats of the second leg's residual, on this rank. A rank without a stripe gets one, because CG_ROUTE_AUTO asks
   whether all ranks or none have some. */
static size_t cg_mean_carry_(const cg_mean *m, const cg_ef_desc *d, size_t tensor) {
    cg_exchange_state x;
    cg_ef ef;
    uint64_t step;
    size_t most = 0;
    int begins;
    if (cg_ef_has_trait_(d, CG_EF_UNBIASED_ONLY_)) return 0; /* they keep nothing back */
    cg_mean_trial_(&ef, d);
    for (uint32_t i = 0; cg_mean_step_at_(m, i, &step, &begins); i++)
        for (int as_first = 0; as_first < 2; as_first++) {
            size_t floats;
            cg_mean_resolve_(m, &ef, step, tensor, as_first ? 0 : m->transport.rank, 1, &x);
            floats = x.status == CG_OK ? cg_carry_floats_(&x) : 0;
            if (as_first && floats) floats = 1;
            if (floats > most) most = floats;
        }
    return most;
}
/* "tensor 1 (w) in step 0: why" */
static cg_status cg_mean_refuse_(
    cg_text_ *t, const cg_mean_list_ *list, size_t i, uint64_t step, cg_status s, const char *why, uint64_t n) {
    if (i < list->count) cg_mean_tensor_name_(t, i, cg_mean_list_name_(list, i));
    else cg_text_str_(t, "all tensors in one packet (pack=)");
    if (step) cg_text_str_(t, " in step ");
    if (step) cg_text_uint_(t, step);
    cg_text_str_(t, ": ");
    cg_text_str_(t, why);
    if (!n) return s;
    cg_text_str_(t, "; n must be ");
    cg_text_uint_(t, n);
    return s;
}
/* Finds what would refuse any step of a tensor; *mem_bytes becomes what its exchanges need. */
static cg_status cg_mean_check_(
    const cg_mean *m, const cg_mean_list_ *list, const cg_ef_desc *d, size_t i, uint64_t *mem_bytes, cg_text_ *t) {
    cg_ef ef;
    cg_ef *efs[1];
    cg_layer layer;
    uint64_t step, alone, listed;
    int begins;
    const size_t none = cg_exchange_layers_memory(NULL, 0, 0, &m->transport);
    const cg_status s = cg_ef_init(&ef, d, NULL, 0);
    *mem_bytes = 0;
    if (s != CG_E_MEMORY && s != CG_OK) return cg_mean_refuse_(t, list, i, 0, s, ef.report.why, ef.report.need);
    cg_mean_trial_(&ef, d);
    efs[0] = &ef;
    memset(&layer, 0, sizeof layer);
    layer.desc = cg_mean_exchange_desc_(m, 0, i);
    if (cg_route_row_of_(layer.desc.route)->traits & (CG_ROUTE_ENDS_AT_OWNER_ | CG_ROUTE_BEGINS_AT_OWNER_))
        return cg_mean_refuse_(t, list, i, 0, CG_E_UNSUPPORTED,
            "this route is one leg of scatter, and leaves each rank with a stripe: take route=scatter, or "
            "cg_reduce_scatter and cg_all_gather",
            0);
    if (cg_ef_desc_why_(&ef, &layer.desc))
        return cg_mean_refuse_(t, list, i, 0, CG_E_UNSUPPORTED, cg_ef_desc_why_(&ef, &layer.desc), 0);
    for (uint32_t j = 0; cg_mean_step_at_(m, j, &step, &begins); j++) {
        const cg_tag tag = cg_mean_tag_(m, step, i);
        cg_op op;
        ef.mark = !begins;
        op = cg_ef_op_(&ef, &tag);
        if (cg_op_traits_(&op) & CG_IS_PER_RANK_ && (uint32_t)m->transport.size > op.sample.size)
            return cg_mean_refuse_(t, list, i, step, CG_E_ARG, "there are more ranks than workers of permk", 0);
        if (cg_op_traits_(&op) & CG_IS_USER_CODEC_)
            return cg_mean_refuse_(t, list, i, step, CG_E_UNSUPPORTED,
                "a codec of yours needs cg_ef_exchange, which can be told of it", 0);
        if (cg_op_traits_(&op) & CG_NEEDS_SUPPORT_)
            return cg_mean_refuse_(t, list, i, step, CG_E_UNSUPPORTED,
                "the operator given needs the packet of another vector: take cg_ef_exchange, or route=shared", 0);
        for (int as_first = 0; as_first < 2; as_first++) {
            const cg_report r = cg_mean_resolved_(m, &ef, step, i, as_first ? 0 : m->transport.rank);
            if (r.status != CG_OK)
                return cg_mean_refuse_(t, list, i, step, (cg_status)r.status, r.why, r.status == CG_E_ARG ? r.need : 0);
        }
        memset(&layer, 0, sizeof layer);
        layer.desc = cg_mean_exchange_desc_(m, step, i);
        alone = cg_ef_exchange_memory(&ef, &layer.desc, &m->transport);
        listed = cg_ef_layers_memory(efs, &layer, 1, d->small, &m->transport);
        if (alone > *mem_bytes) *mem_bytes = alone;
        if (listed > *mem_bytes) *mem_bytes = listed;
    }
    ef.vector[2] = cg_ef_has_trait_(d, CG_EF_KEEPS_RECEIVED_) ? &ef.scale : NULL;
    alone = cg_ef_agree_memory(&ef, &layer.desc, &m->transport);
    if (alone > *mem_bytes) *mem_bytes = alone;
    if (!*mem_bytes) return cg_mean_refuse_(t, list, i, 0, CG_E_ARG, "its sizes overflow", 0);
    *mem_bytes = *mem_bytes > none ? *mem_bytes - none : 0;
    return CG_OK;
}
/* Bytes of a state that must be as before after a step that failed: its vectors, warm and carry, which stand first. */
static uint64_t cg_mean_kept_bytes_(const cg_ef_desc *d) {
    cg_ef_needs_ needs;
    cg_ef ef;
    if (cg_ef_check_(d, &needs) != CG_OK) return 0;
    needs.whole_vector = 0;
    needs.scratch_bytes = 0;
    return cg_ef_plan_(&ef, d, &needs, NULL);
}

static uint64_t cg_mean_agree_bytes_(const cg_mean *m); /* in ef/mean_agree.h */

/* ---- opening ---- */

/* The layout that is under way. */
typedef struct cg_mean_layout_ {
    cg_arena_ arena;
    uint64_t exchange; /* bytes for exchanges */
    size_t units;      /* states so far */
    cg_text_ *why;
} cg_mean_layout_;
/* Checks a state that the mean has, lays it out, and makes it if there is memory. i: the tensor, or list->count. */
static cg_status cg_mean_unit_(
    cg_mean *m, const cg_mean_list_ *list, size_t i, cg_ef_desc *d, cg_mean_tensor_ *tensor, cg_mean_layout_ *at) {
    uint64_t one, state;
    uint8_t *state_mem;
    cg_status s;
    d->carry = cg_mean_carry_(m, d, i);
    s = cg_mean_check_(m, list, d, i, &one, at->why);
    if (s != CG_OK) return s;
    at->exchange = cg_add_sat_(at->exchange, one);
    state = cg_ef_memory(d);
    tensor->ef = (cg_ef *)(void *)cg_arena_take_(&at->arena, sizeof(cg_ef));
    tensor->before = (cg_ef *)(void *)cg_arena_take_(&at->arena, sizeof(cg_ef));
    state_mem = cg_arena_take_(&at->arena, state);
    tensor->kept_bytes = cg_size_or_zero_(cg_mean_kept_bytes_(d));
    tensor->backup = cg_arena_take_(&at->arena, tensor->kept_bytes);
    tensor->result = NULL;
    if (!d->segments && (m->config.overlap || cg_ef_has_trait_(d, CG_EF_KEEPS_RECEIVED_)))
        tensor->result = (float *)(void *)cg_arena_take_(&at->arena, cg_mul_sat_(4, d->n));
    if (!at->arena.base) return CG_OK;
    s = cg_ef_init(tensor->ef, d, state_mem, (size_t)state);
    if (s != CG_OK) return cg_mean_refuse_(at->why, list, i, 0, s, tensor->ef->report.why, 0);
    tensor->kept = state_mem; /* it is aligned, so that the state begins there */
    m->efs[at->units++] = tensor->ef;
    return CG_OK;
}
/* The one state of all tensors, by pack=. Without memory the list of segments is on the stack, which bounds it. */
enum { CG_MEAN_PACK_ = 512 };
CG_NOINLINE_ cg_status cg_mean_plan_packed_(cg_mean *m, const cg_mean_list_ *list, cg_mean_layout_ *at) {
    size_t n_here[CG_MEAN_PACK_], *n = n_here, first = list->count;
    uint32_t op_here[CG_MEAN_PACK_], *op = op_here;
    cg_mean_tensor_ measured;
    cg_ef_desc d = m->config.ef;
    uint64_t total = 0;
    if (list->count > CG_MEAN_PACK_) {
        cg_text_str_(at->why, "pack= takes at most 512 tensors: open several means");
        return CG_E_ARG;
    }
    if (m->config.by_shape || cg_ef_has_trait_(&d, CG_EF_TAKES_VARIANCE_)) {
        cg_text_str_(at->why, "pack= is neither for matrices by shape nor for memory=variance: leave it out");
        return CG_E_UNSUPPORTED;
    }
    m->pack_n = (size_t *)(void *)cg_arena_take_(&at->arena, list->count * sizeof(size_t));
    m->pack_op = (uint32_t *)(void *)cg_arena_take_(&at->arena, list->count * sizeof(uint32_t));
    if (at->arena.base) n = m->pack_n, op = m->pack_op;
    for (size_t i = 0; i < list->count; i++) {
        n[i] = cg_mean_list_n_(list, i);
        op[i] = n[i] < d.small ? CG_SEGMENT_EXACT : CG_SEGMENT_OP;
        if (n[i] && first == list->count) first = i;
        total = cg_add_sat_(total, n[i]);
    }
    m->segments.n = n;
    m->segments.count = list->count;
    m->segments.op = op;
    m->segments.flags = m->config.packing == CG_PACK_GLOBAL_ ? CG_SEGMENTS_GLOBAL : 0;
    m->active = total != 0;
    m->packed = (float *)(void *)cg_arena_take_(&at->arena, cg_mul_sat_(4, total));
    d.op = m->config.op;
    d.n = cg_size_or_zero_(total);
    d.small = 0;
    d.workers = m->transport.size;
    d.segments = &m->segments;
    if (!total) return CG_OK;
    if (!d.n) return cg_mean_refuse_(at->why, list, list->count, 0, CG_E_ARG, "the sizes overflow", 0);
    return cg_mean_unit_(m, list, list->count, &d, at->arena.base ? &m->tensor[first] : &measured, at);
}
/* Checks everything and lays out the memory from base on, a multiple of 64 bytes behind *m; NULL: only measures.
   *bytes: what is needed in all. */
static cg_status cg_mean_plan_(cg_mean *m, const cg_mean_list_ *list, uint8_t *base, uint64_t *bytes, cg_text_ *why) {
    cg_mean_layout_ at;
    uint64_t name_bytes = 0;
    char *names;
    const int takes_variance = cg_ef_has_trait_(&m->config.ef, CG_EF_TAKES_VARIANCE_);
    cg_status s = CG_OK;
    memset(&at, 0, sizeof at);
    at.arena.base = base;
    at.exchange = 64;
    at.why = why;
    m->tensors = list->count;
    m->active = 0;
    for (size_t i = 0; i < list->count; i++) {
        const char *name = cg_mean_list_name_(list, i);
        name_bytes = cg_add_sat_(name_bytes, name ? cg_text_len_(name) + 1 : 0);
        m->active += cg_mean_list_n_(list, i) != 0;
    }
    m->tensor = (cg_mean_tensor_ *)(void *)cg_arena_take_(&at.arena, cg_mul_sat_(list->count, sizeof(cg_mean_tensor_)));
    m->flat = (float **)(void *)cg_arena_take_(&at.arena, cg_mul_sat_(list->count, sizeof(float *)));
    m->efs = (cg_ef **)(void *)cg_arena_take_(&at.arena, cg_mul_sat_(m->active, sizeof(cg_ef *)));
    m->layers = (cg_layer *)(void *)cg_arena_take_(&at.arena, cg_mul_sat_(m->active, sizeof(cg_layer)));
    m->sides = NULL;
    if (takes_variance)
        m->sides = (cg_extra *)(void *)cg_arena_take_(&at.arena, cg_mul_sat_(m->active, sizeof(cg_extra)));
    m->ctx = m->config.overlap ? (cg_ef_exchange_ctx_ *)(void *)cg_arena_take_(&at.arena, sizeof *m->ctx) : NULL;
    names = (char *)cg_arena_take_(&at.arena, name_bytes);
    for (size_t i = 0; i < list->count && s == CG_OK; i++) {
        const size_t n = cg_mean_list_n_(list, i), rows = cg_mean_list_rows_(list, i);
        const char *name = cg_mean_list_name_(list, i);
        cg_mean_tensor_ *tensor = base ? &m->tensor[i] : NULL, measured;
        cg_ef_desc d = cg_mean_desc_(m, n, rows);
        if (!tensor) tensor = &measured;
        memset(tensor, 0, sizeof *tensor);
        tensor->n = n;
        tensor->rows = rows;
        if (name && base) {
            tensor->name = names;
            do *names++ = *name;
            while (*name++);
        }
        if (rows > 1 && n % rows) return cg_mean_refuse_(why, list, i, 0, CG_E_ARG, "rows does not divide n", 0);
        if (n && !m->config.packing) s = cg_mean_unit_(m, list, i, &d, tensor, &at);
    }
    if (s == CG_OK && m->config.packing) s = cg_mean_plan_packed_(m, list, &at);
    if (s != CG_OK) return s;
    at.exchange = cg_add_sat_(at.exchange, cg_exchange_layers_memory(NULL, 0, 0, &m->transport));
    if (at.exchange < cg_mean_agree_bytes_(m)) at.exchange = cg_mean_agree_bytes_(m);
    m->mem = cg_arena_take_(&at.arena, at.exchange);
    m->mem_bytes = cg_size_or_zero_(at.exchange);
    *bytes = cg_add_sat_(at.arena.bytes, CG_MEAN_HEAD_);
    return CG_OK;
}
/* What must be the same on all ranks: configuration, sizes, names and shapes. */
static uint64_t cg_mean_hash_(const cg_mean *m, const cg_mean_list_ *list) {
    char text[CG_MEAN_OP_TEXT_ + 1024];
    cg_text_ t = cg_mean_text_(text, sizeof text);
    uint64_t h = CG_MEAN_MAGIC_;
    cg_mean_config_print_(&m->config, &t);
    for (const char *p = text; p < t.at; p++) h = cg_mix64_(h + (uint8_t)*p + CG_GOLDEN_);
    for (size_t i = 0; i < list->count; i++) {
        const char *name = cg_mean_list_name_(list, i);
        h = cg_mix64_(h ^ cg_mean_list_n_(list, i));
        h = cg_mix64_(h ^ cg_mean_list_rows_(list, i));
        for (; name && *name; name++) h = cg_mix64_(h + (uint8_t)*name + CG_GOLDEN_);
    }
    return h ? h : 1;
}
/* Everything that does not need mem. */
static cg_status cg_mean_begin_(cg_mean *m, const char *config, const cg_mean_list_ *list,
    const cg_transport *transport, uint64_t *bytes, cg_text_ *why) {
    const char *error;
    *bytes = 0;
    if (!transport || (!list->n && !list->tensor && list->count)) {
        cg_text_str_(why, transport ? "n is NULL: give the number of values of every tensor" : "transport is NULL");
        return CG_E_ARG;
    }
    if (!list->count || list->count > UINT32_MAX) {
        cg_text_str_(why, "there is no tensor: give at least one, and at most 2^32 - 1");
        return CG_E_ARG;
    }
    error = cg_transport_error_(transport);
    if (error) {
        cg_text_str_(why, "transport: ");
        cg_text_str_(why, error);
        return CG_E_ARG;
    }
    m->transport = *transport;
    if (!cg_mean_config_read_(&m->config, config, why)) return CG_E_ARG;
    for (size_t i = 0, any = !m->config.by_shape; i < list->count && !any; i++) {
        any = cg_mean_list_rows_(list, i) > 1;
        if (any || i + 1 < list->count) continue;
        cg_text_str_(why,
            "at 0: this operator takes rows and columns of tensors, and none has them: open with "
            "cg_mean_open_of and give rows, or write them, as in 'lowrank:4:512:256'");
        return CG_E_ARG;
    }
    m->common = cg_mean_hash_(m, list);
    return cg_mean_plan_(m, list, NULL, bytes, why);
}
static size_t cg_mean_memory_(
    const char *config, const cg_mean_list_ *list, const cg_transport *transport, char *why, size_t cap) {
    const cg_fenv_ env = cg_fenv_enter_();
    cg_text_ t = cg_mean_text_(why, cap);
    cg_mean m;
    uint64_t bytes;
    cg_status s;
    memset(&m, 0, sizeof m);
    s = cg_mean_begin_(&m, config, list, transport, &bytes, &t);
    if (s == CG_OK && !cg_size_or_zero_(bytes)) cg_text_str_(&t, "the sizes of all tensors together overflow");
    if (why && cap) *t.at = 0;
    cg_fenv_leave_(env);
    return s == CG_OK ? cg_size_or_zero_(bytes) : 0;
}
CG_API_ size_t cg_mean_memory(
    const char *config, const size_t *n, size_t tensors, const cg_transport *transport, char *why, size_t cap) {
    const cg_mean_list_ list = { n, NULL, tensors };
    return cg_mean_memory_(config, &list, transport, why, cap);
}
CG_API_ size_t cg_mean_memory_of(
    const char *config, const cg_tensor *tensor, size_t tensors, const cg_transport *transport, char *why, size_t cap) {
    const cg_mean_list_ list = { NULL, tensor, tensors };
    return cg_mean_memory_(config, &list, transport, why, cap);
}
static cg_status cg_mean_open_(cg_mean **mean, const char *config, const cg_mean_list_ *list,
    const cg_transport *transport, void *mem, size_t bytes) {
    const size_t skip = mem ? (16 - ((uintptr_t)mem & 15)) % 16 : 0;
    cg_mean *m;
    uint8_t *base;
    cg_fenv_ env;
    cg_text_ t;
    uint64_t need;
    cg_status s;
    if (!mean) return CG_E_ARG;
    *mean = NULL;
    if (!mem || bytes < skip || bytes - skip < sizeof *m) return CG_E_MEMORY;
    *mean = m = (cg_mean *)(void *)((uint8_t *)mem + skip);
    env = cg_fenv_enter_();
    memset(m, 0, sizeof *m);
    t = cg_mean_text_(m->why, sizeof m->why);
    s = cg_mean_begin_(m, config, list, transport, &need, &t);
    if (s == CG_OK && need > SIZE_MAX / 2) {
        s = CG_E_ARG;
        cg_text_str_(&t, "the sizes of all tensors together overflow");
    } else if (s == CG_OK && bytes < need) {
        s = CG_E_MEMORY;
        cg_text_str_(&t, "mem is too small: cg_mean_memory gives its bytes; ");
        cg_text_uint_(&t, need);
        cg_text_str_(&t, " bytes suffice");
    }
    base = (uint8_t *)(m + 1);
    base += (64 - ((uintptr_t)base & 63)) % 64;
    if (s == CG_OK) s = cg_mean_plan_(m, list, base, &need, &t);
    *t.at = 0;
    if (s == CG_OK) {
        m->magic = CG_MEAN_MAGIC_;
        cg_mean_say_(m, CG_OK, cg_status_str(CG_OK));
    } else
        cg_report_set_(
            &m->report, s, "the mean is not open: cg_mean_why says why", s == CG_E_MEMORY ? need : 0, CG_NO_INDEX);
    cg_fenv_leave_(env);
    return s;
}
CG_API_ cg_status cg_mean_open(cg_mean **mean, const char *config, const size_t *n, size_t tensors,
    const cg_transport *transport, void *mem, size_t bytes) {
    const cg_mean_list_ list = { n, NULL, tensors };
    return cg_mean_open_(mean, config, &list, transport, mem, bytes);
}
CG_API_ cg_status cg_mean_open_of(cg_mean **mean, const char *config, const cg_tensor *tensor, size_t tensors,
    const cg_transport *transport, void *mem, size_t bytes) {
    const cg_mean_list_ list = { NULL, tensor, tensors };
    return cg_mean_open_(mean, config, &list, transport, mem, bytes);
}
CG_API_ const char *cg_mean_why(const cg_mean *mean) {
    return mean ? mean->why : "mean is NULL: cg_mean_open was given no memory, or fewer than 1 KB";
}
CG_API_ void cg_mean_report(const cg_mean *mean, cg_report *report) {
    if (!report) return;
    if (mean) *report = mean->report;
    else cg_report_set_(report, CG_E_ARG, cg_mean_why(NULL), 0, CG_NO_INDEX);
}
CG_API_ uint64_t cg_mean_steps(const cg_mean *mean) { return mean ? mean->steps : 0; }
/* The state that has this tensor, or NULL. */
static cg_ef *cg_mean_state_of_(const cg_mean *m, size_t tensor) {
    if (!m || m->magic != CG_MEAN_MAGIC_ || tensor >= m->tensors) return NULL;
    return m->config.packing && m->tensor[tensor].n ? m->efs[0] : m->tensor[tensor].ef;
}
CG_API_ const cg_ef *cg_mean_state(const cg_mean *mean, size_t tensor) { return cg_mean_state_of_(mean, tensor); }
CG_API_ cg_status cg_mean_moved(cg_mean *mean, size_t tensor, double squared) {
    if (!mean || mean->magic != CG_MEAN_MAGIC_ || tensor >= mean->tensors) return CG_E_ARG;
    return cg_mean_state_of_(mean, tensor) ? cg_ef_moved(cg_mean_state_of_(mean, tensor), squared) : CG_OK;
}
