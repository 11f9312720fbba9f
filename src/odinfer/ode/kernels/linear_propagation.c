/* States of linear equations from stop to stop by the matrix exponential; see linear_propagation.py. */
#include "kernels.h"

enum { DEGREE = 10, MOST_SQUARINGS = 60 };  /* of the Taylor polynomial; of the scaled matrix */
static const double SMALL = 0.5;            /* the norm for which the polynomial is used */

typedef struct { Vector r, x, rate, before; Matrix fx, nothing, M, P, T, W; } Work;
typedef struct {
    Tape tape;
    Drive drive;
    Index e;
    Matrix numbers, x0, stops;
    Index last;
    Matrices amounts, inputs, found;
    Work work;
} Propagate;

static void multiply(const double *A, const double *B, double *C, int64_t n)
{
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = 0; b < n; b++) {
            double total = 0.0;
            for (int64_t c = 0; c < n; c++)
                total += A[a * n + c] * B[c * n + b];
            C[a * n + b] = total;
        }
}

/* P = exp(M) of (n, n) matrices; M is scaled in its place, T and W are room to work in. */
static void exponential(double *M, double *P, double *T, double *W, int64_t n)
{
    double norm = 0.0;
    int squarings = 0;
    for (int64_t a = 0; a < n - 1; a++) {
        double total = 0.0;
        for (int64_t b = 0; b < n - 1; b++)
            total += fabs(M[a * n + b]);
        norm = most(norm, total);
    }
    for (; norm > SMALL && squarings < MOST_SQUARINGS; squarings++)
        norm *= 0.5;
    for (int64_t i = 0; i < n * n; i++) {
        M[i] = ldexp(M[i], -squarings);
        P[i] = T[i] = i % (n + 1) == 0;
    }
    for (int k = 1; k <= DEGREE; k++) {
        multiply(T, M, W, n);
        for (int64_t i = 0; i < n * n; i++) {
            T[i] = W[i] / k;
            P[i] += T[i];
        }
    }
    for (int s = 0; s < squarings; s++) {
        multiply(P, P, W, n);
        for (int64_t i = 0; i < n * n; i++)
            P[i] = W[i];
    }
}

/* Fill in the states (n, K) of trajectory i at all stops of its experiment. */
static void propagate_one(const Propagate *a, int64_t i)
{
    const Tape *tape = &a->tape;
    const Drive *drive = &a->drive;
    const Work *work = &a->work;
    int64_t K = a->x0.columns, N = a->numbers.columns, U = a->inputs.columns, n = a->stops.columns, own = a->e.at[i];
    double *r = work->r.at, *x = work->x.at, *rate = work->rate.at, *before = work->before.at, *M = work->M.at;
    double *P = work->P.at, *W = work->W.at, *found = a->found.at + i * n * K, *fx = work->fx.at;
    r[0] = 0.0;
    for (int64_t k = 0; k < K; k++) {
        r[1 + k] = 0.0;
        x[k] = found[k] = a->x0.at[i * K + k];
    }
    for (int64_t j = 0; j < N; j++)
        r[1 + K + j] = a->numbers.at[i * N + j];
    run(&tape->code, r);
    slopes(tape, r, fx, 0, K, 0);
    double length = -1.0;
    for (int64_t stop = 0; stop < a->last.at[own]; stop++) {
        double t = a->stops.at[own * n + stop], until = a->stops.at[own * n + stop + 1], middle = 0.5 * (t + until);
        const double *inputs = a->inputs.at + (own * n + stop) * U, *amounts = a->amounts.at + (own * n + stop) * K;
        int same = length == until - t, changed = 0;
        for (int64_t j = 0; j < U; j++) {
            changed |= r[1 + K + j] != inputs[j];
            r[1 + K + j] = inputs[j];
        }
        if (changed) {
            run(&tape->code, r);
            slopes(tape, r, fx, 0, K, 0);
            same = 0;
        }
        for (int64_t k = 0; k < K; k++) {
            x[k] += amounts[k];
            rate[k] = r[tape->values.at[k]];
        }
        if (drive->infused)
            for (int64_t j = drive->infusions.at[own]; j < drive->infusions.at[own + 1]; j++)
                if (drive->begin.at[j] <= middle && middle < drive->end.at[j])
                    rate[drive->into.at[j]] += drive->rate.at[j];
        for (int64_t k = 0; k < K; k++) {
            same &= rate[k] == before[k];
            before[k] = rate[k];
        }
        if (!same) {
            length = until - t;
            for (int64_t k = 0; k < K; k++) {
                for (int64_t m = 0; m < K; m++)
                    M[k * (K + 1) + m] = fx[k * K + m] * length;
                M[k * (K + 1) + K] = rate[k] * length;
            }
            for (int64_t m = 0; m <= K; m++)
                M[K * (K + 1) + m] = 0.0;
            exponential(M, P, work->T.at, W, K + 1);
        }
        for (int64_t k = 0; k < K; k++) {
            double total = P[k * (K + 1) + K];
            for (int64_t m = 0; m < K; m++)
                total += P[k * (K + 1) + m] * x[m];
            W[k] = total;
        }
        for (int64_t k = 0; k < K; k++)
            x[k] = found[(stop + 1) * K + k] = W[k];
    }
}

ENTRY propagate(const Propagate *a)
{
    for (int64_t i = 0; i < a->x0.rows; i++)
        propagate_one(a, i);
    return 0;
}
