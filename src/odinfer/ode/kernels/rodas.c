/* One step of RODAS, a stiffly accurate Rosenbrock method of order 4 with 6 stages.

   Hairer and Wanner, Solving Ordinary Differential Equations II, section VI.4. Stages solve linear equations with one
   matrix, so that no iteration can fail to converge:

       (I/(γh) − ∂f/∂x) U_i = f(t + α_i h, x + Σ_j a_ij U_j) + Σ_j (c_ij/h) U_j + γ_i h ∂f/∂t */
#include "kernels.h"

static const double GAMMA = 0.25;
static const double ALPHA[6] = {0.0, 0.386, 0.21, 0.63, 1.0, 1.0};
static const double GAMMAS[6] = {0.25, -0.1043, 0.1035, -0.0362, 0.0, 0.0};
static const double A[6][5] = {
    {0.0},
    {1.544},
    {0.9466785280815826, 0.2557011698983284},
    {3.314825187068521, 2.896124015972201, 0.9986419139977817},
    {1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950},
    {1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950, 1.0},
};
static const double C[6][5] = {
    {0.0},
    {-5.6688},
    {-2.430093356833875, -0.2063599157091915},
    {-0.1073529058151375, -9.594562251023355, -20.47028614809616},
    {7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160},
    {8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054},
};
static const double DENSE[2][5] = {
    {10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823, 1.025137723295662},
    {-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386, -6.594389125716872},
};

/* Put a step of length h and the estimate of its local error into `to`. */
void rodas_step(const Start *start, double h, const Step *to)
{
    int64_t K = start->K;
    double *W = to->W.at, *end = to->end.at, *f = to->f.at;
    for (int64_t i = 0; i < K * K; i++)
        W[i] = -start->fx[i];
    for (int64_t k = 0; k < K; k++)
        W[k * K + k] += 1.0 / (GAMMA * h);
    factor(W, to->order.at, K);
    transpose_factors(W, to->T.at, K);
    for (int i = 0; i < 6; i++) {
        double *own = to->U.at + i * K;
        for (int64_t k = 0; k < K; k++) {
            end[k] = start->x[k];
            own[k] = 0.0;
        }
        for (int j = 0; j < i; j++) {
            const double *U = to->U.at + j * K;
            double a = A[i][j], c = C[i][j] / h;
            for (int64_t k = 0; k < K; k++) {
                end[k] += a * U[k];
                own[k] += c * U[k];
            }
        }
        const double *rate = start->f0;
        if (i) {
            double t = least(most(start->t + ALPHA[i] * h, start->low), start->high);
            evaluate(start->tape, start->drive, start->e, t, end, K, start->r, f);
            rate = f;
        }
        for (int64_t k = 0; k < K; k++)
            own[k] += rate[k] + GAMMAS[i] * h * start->ft[k];
        solve(to->T.at, to->order.at, own, K);
    }
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < K; k++) {
            double bend = 0.0;
            for (int j = 0; j < 5; j++)
                bend += DENSE[i][j] * to->U.at[j * K + k];
            to->bend.at[i * K + k] = bend;
        }
    for (int64_t k = 0; k < K; k++) {
        to->error.at[k] = to->U.at[5 * K + k];
        end[k] += to->error.at[k];
    }
}

typedef struct {
    Tape tape;
    Drive drive;
    int64_t e;
    double t, h, low, high;
    Vector x, r, f0;
    Matrix fx;
    Vector ft;
    Step to;
} Arguments;

ENTRY step(const Arguments *a)
{
    Start start = {&a->tape, &a->drive, a->e, a->x.n, a->t, a->low, a->high,
                   a->x.at, a->f0.at, a->fx.at, a->ft.at, a->r.at};
    rodas_step(&start, a->h, &a->to);
    return 0;
}
