/* Carry derivatives of trajectories along steps that are known, by Radau IIA of order 3; see sensitivities.py. */
#include "kernels.h"

static const double STAGE = 1.0 / 3.0;  /* of a step: where the first stage is */
static const double END = 1.0 - 1e-9;   /* its end is moved inside it, where the field may jump there */
static const double RADAU[2][2] = {{5.0 / 12.0, -1.0 / 12.0}, {9.0 / 12.0, 3.0 / 12.0}};

/* Steps and Read of integrate_batch.py, _Work of sensitivities.py. */
typedef struct { Index who; Vector t, until; Matrix x, end; Matrices bend; } Steps;
typedef struct { Index step, stop; Vector share; } Read;
typedef struct { Vector r, x, f; Matrices fx, ft; Matrix matrix; Index order; Matrix Z; } Work;
typedef struct {
    Tape tape;
    Drive drive;
    Index e;
    Matrix numbers;
    Index place;
    Steps steps;
    Read at;
    Matrices S;
    MatrixTable found;
    Work work;
} Follow;

/* f, ∂f/∂x and the derivatives by parameters at both stages of step i. */
static void linearise(const Follow *a, int64_t i, double h)
{
    int64_t K = a->S.rows, Q = a->work.ft.columns, e = a->e.at[a->steps.who.at[i]];
    double *x = a->work.x.at, *r = a->work.r.at;
    const double *begin = a->steps.x.at + i * K, *end = a->steps.end.at + i * K, *bend = a->steps.bend.at + 2 * i * K;
    for (int j = 0; j < 2; j++) {
        for (int64_t k = 0; k < K; k++) {
            double inner = bend[k] + STAGE * bend[K + k];
            x[k] = j ? end[k] : (1.0 - STAGE) * begin[k] + STAGE * (end[k] + (1.0 - STAGE) * inner);
        }
        evaluate(&a->tape, &a->drive, e, a->steps.t.at[i] + (j ? END : STAGE) * h, x, K, r, a->work.f.at);
        slopes(&a->tape, r, a->work.fx.at + j * K * K, a->work.ft.at + j * K * Q, K, Q);
    }
}

/* Z_i = S + h Σ_j a_ij (J_j Z_j + F_j); both stages of a state are neighbours, so that chains have few factors. */
static void solve_stages(const Follow *a, const double *now, double h)
{
    int64_t K = a->S.rows, W = a->S.columns, Q = a->work.ft.columns, first = W - Q;
    double *matrix = a->work.matrix.at, *Z = a->work.Z.at;
    const double *fx = a->work.fx.at, *ft = a->work.ft.at;
    for (int s = 0; s < 2; s++)
        for (int64_t k = 0; k < K; k++) {
            double *row = matrix + (2 * k + s) * 2 * K, *right = Z + (2 * k + s) * W;
            for (int64_t m = 0; m < K; m++) {
                row[2 * m] = -h * RADAU[s][0] * fx[k * K + m];
                row[2 * m + 1] = -h * RADAU[s][1] * fx[(K + k) * K + m];
            }
            row[2 * k + s] += 1.0;
            for (int64_t w = 0; w < W; w++)
                right[w] = now[k * W + w];
            for (int64_t q = 0; q < Q; q++)
                right[first + q] += h * (RADAU[s][0] * ft[k * Q + q] + RADAU[s][1] * ft[(K + k) * Q + q]);
        }
    factor(matrix, a->work.order.at, 2 * K);
    solve_all(matrix, a->work.order.at, Z, 2 * K, W);
}

/* Carry S (b, K, W) along the steps, and read off what is found (b, n, K, W) at the stops within them; `place` (B,) of
   all trajectories is that among the wanted ones, −1 if they are not wanted. */
ENTRY follow(const Follow *a)
{
    int64_t K = a->S.rows, W = a->S.columns, N = a->numbers.columns, n = a->found.n, last = -1, reading = 0;
    for (int64_t i = 0; i < a->steps.who.n; i++) {
        int64_t who = a->steps.who.at[i], own = a->place.at[who];
        while (reading < a->at.step.n && a->at.step.at[reading] < i)
            reading++;
        if (own < 0)
            continue;
        if (who != last)
            for (int64_t j = 0; j < N; j++)
                a->work.r.at[1 + K + j] = a->numbers.at[who * N + j];
        last = who;
        double h = a->steps.until.at[i] - a->steps.t.at[i], *now = a->S.at + own * K * W;
        const double *Z = a->work.Z.at;
        linearise(a, i, h);
        solve_stages(a, now, h);
        for (; reading < a->at.step.n && a->at.step.at[reading] == i; reading++) {
            /* Lagrange's polynomials at 0, 1/3 and 1. */
            double s = a->at.share.at[reading], *into = a->found.at + (own * n + a->at.stop.at[reading]) * K * W;
            double start = (s - 1.0) * (3.0 * s - 1.0), stage = 4.5 * s * (1.0 - s), end = 0.5 * s * (3.0 * s - 1.0);
            for (int64_t k = 0; k < K; k++)
                for (int64_t w = 0; w < W; w++)
                    into[k * W + w] = start * now[k * W + w] + stage * Z[2 * k * W + w] + end * Z[(2 * k + 1) * W + w];
        }
        for (int64_t k = 0; k < K; k++)
            for (int64_t w = 0; w < W; w++)
                now[k * W + w] = Z[(2 * k + 1) * W + w];
    }
    return 0;
}
