/* Where a condition of an event becomes true within a step. */
#include "kernels.h"

enum {
    PLACES = 4,   /* of a step at which conditions are evaluated; one that holds between two may be missed */
    HALVINGS = 48 /* of a step: down to the resolution of floating-point numbers */
};

/* Whether a condition (T,) is true that was not. */
int is_new(const double *truth, const uint8_t *held, int64_t T)
{
    for (int64_t i = 0; i < T; i++)
        if (truth[i] != 0.0 && !held[i])
            return 1;
    return 0;
}

/* The length at which a step of length h must end since a condition becomes true then; h if none does.

   plain: the drive without infusions. to: the whole step, and the shortened one afterwards. held: which conditions (T,)
   are true at the beginning, and just before the end afterwards. truth: conditions (T,) at the end, afterwards.
   at: room for states (K,). */
double shortened(const Start *start, double h, const Step *to, const Tape *conditions, const Drive *plain,
                 double *r_conditions, uint8_t *held, double *truth, double *at, int64_t T)
{
    int64_t K = start->K, e = start->e;
    double before = 0.0, t = start->t, low = start->low, high = start->high;
    const double *bend = to->bend.at, *end = to->end.at;
    for (int place = 1; place <= PLACES; place++) {
        double share = (double)place / PLACES;
        for (int64_t k = 0; k < K; k++) {
            double inner = bend[k] + share * bend[K + k];
            at[k] = (1.0 - share) * start->x[k] + share * (end[k] + (1.0 - share) * inner);
        }
        evaluate(conditions, plain, e, least(most(t + share * h, low), high), at, K, r_conditions, truth);
        if (!is_new(truth, held, T)) {
            for (int64_t i = 0; i < T; i++)
                held[i] = truth[i] != 0.0;
            before = share;
            continue;
        }
        double a = before, b = share;
        for (int i = 0; i < HALVINGS; i++) {
            double middle = 0.5 * (a + b);
            if (middle <= a || middle >= b)
                break;
            rodas_step(start, middle * h, to);
            evaluate(conditions, plain, e, least(most(t + middle * h, low), high), end, K, r_conditions, truth);
            if (is_new(truth, held, T))
                b = middle;
            else
                a = middle;
        }
        rodas_step(start, b * h, to);
        evaluate(conditions, plain, e, least(most(t + b * h, low), high), end, K, r_conditions, truth);
        return b * h;
    }
    return h;
}
