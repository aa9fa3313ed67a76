/* run: calls the selection of an operator

   Offers   cg_selector_run_
   Needs    all rooms of select, shape; cg_select_given_ is in decode.h
   Touches  the list; k and threshold in info; op.select.size of `given` in info */

static cg_status cg_select_given_(const cg_selector_ *p);

/* Fills list, info->k and info->threshold. p->x has been made unless the selection is top-k. On an error the list is
   undefined. */
static cg_status cg_selector_run_(const cg_selector_ *p) {
    const cg_stage *stage = &p->info->op.select;
    cg_status s = CG_OK;
    if (!p->n && stage->id != CG_SELECT_GIVEN) {
        p->list->count = 0;
        p->info->k = 0;
        return CG_OK;
    }
    switch (stage->id) {
    case CG_SELECT_TOPK: s = cg_select_topk_(p, (size_t)cg_max_selected_(&p->info->op, p->n)); break;
    case CG_SELECT_MSTOPK: s = cg_select_mstopk_(p, (size_t)cg_max_selected_(&p->info->op, p->n)); break;
    case CG_SELECT_DGC: s = cg_select_dgc_(p); break;
    case CG_SELECT_SIDCO: s = cg_select_sidco_(p); break;
    case CG_SELECT_WANGNI: s = cg_select_wangni_(p); break;
    case CG_SELECT_WANGNIVAR: s = cg_select_wangni_variance_(p); break;
    case CG_SELECT_SIDES:
    case CG_SELECT_SIDE: s = cg_select_sides_(p); break;
    case CG_SELECT_BINS: s = cg_select_adacomp_(p); break;
    case CG_SELECT_VARIANCE: s = cg_select_variance_(p); break;
    case CG_SELECT_CHUNKED: s = cg_select_chunked_(p); break;
    case CG_SELECT_BLOCKS: return cg_select_blocks_(p); /* k is not the number of indices */
    case CG_SELECT_GIVEN: return cg_select_given_(p);
    default:
        cg_filter_vector_(p->kernels, p->x, p->n, (cg_as_bits_(stage->value) & CG_ABS_MASK_) + 1, p->list);
        if (p->kernels->absmax_bits(p->list->value, p->list->count) >= CG_INF_BITS_) s = CG_E_NONFINITE;
    }
    p->info->k = p->list->count;
    return s;
}
