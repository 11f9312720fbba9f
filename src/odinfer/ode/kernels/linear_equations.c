/* Gaussian elimination with partial pivoting. Zeros are passed over, so that banded matrices take time linear in n,
   apart from looking. Where a matrix has no inverse, what is found is not finite. */
#include "kernels.h"

/* Replace A (n, n) by its triangular factors, rows in an order (n,). */
void factor(double *A, int64_t *order, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        int64_t best = j, end = n;
        for (int64_t i = j + 1; i < n; i++)
            if (fabs(A[i * n + j]) > fabs(A[best * n + j]))
                best = i;
        order[j] = best;
        double *pivot = A + j * n;
        if (best != j)
            for (int64_t k = 0; k < n; k++) {
                double kept = pivot[k];
                pivot[k] = A[best * n + k];
                A[best * n + k] = kept;
            }
        while (end > j + 1 && pivot[end - 1] == 0.0)
            end--;
        double over = 1.0 / pivot[j];
        for (int64_t i = j + 1; i < n; i++) {
            double *row = A + i * n;
            if (row[j] == 0.0)
                continue;
            double share = row[j] *= over;
            for (int64_t k = j + 1; k < end; k++)
                row[k] -= share * pivot[k];
        }
    }
}

/* Put the transposed factors, by which `solve` goes, into T (n, n), with the diagonal inverted. */
void transpose_factors(const double *A, double *T, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++)
            T[j * n + i] = A[i * n + j];
        T[i * n + i] = 1.0 / A[i * n + i];
    }
}

/* Put the solution of A x = b (n,), of which T has the factors, in the place of b. */
void solve(const double *T, const int64_t *order, double *b, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        double kept = b[j];
        b[j] = b[order[j]];
        b[order[j]] = kept;
    }
    for (int64_t k = 0; k < n - 1; k++) {
        const double *column = T + k * n;
        double share = b[k];
        for (int64_t i = k + 1; i < n; i++)
            b[i] -= column[i] * share;
    }
    for (int64_t k = n - 1; k >= 0; k--) {
        const double *column = T + k * n;
        double share = b[k] *= column[k];
        for (int64_t i = 0; i < k; i++)
            b[i] -= column[i] * share;
    }
}

static void subtract_rows(const double *restrict factors, double *restrict B, int64_t i, int64_t from, int64_t until,
                          int64_t m)
{
    for (int64_t k = from; k < until; k++) {
        double share = factors[k];
        if (share != 0.0)
            for (int64_t w = 0; w < m; w++)
                B[i * m + w] -= share * B[k * m + w];
    }
}

/* The same for all columns of B (n, m), by the factors as they are. */
void solve_all(const double *A, const int64_t *order, double *B, int64_t n, int64_t m)
{
    for (int64_t j = 0; j < n; j++)
        if (order[j] != j)
            for (int64_t w = 0; w < m; w++) {
                double kept = B[j * m + w];
                B[j * m + w] = B[order[j] * m + w];
                B[order[j] * m + w] = kept;
            }
    for (int64_t i = 0; i < n; i++)
        subtract_rows(A + i * n, B, i, 0, i, m);
    for (int64_t i = n - 1; i >= 0; i--) {
        subtract_rows(A + i * n, B, i, i + 1, n, m);
        double over = 1.0 / A[i * n + i];
        for (int64_t w = 0; w < m; w++)
            B[i * m + w] *= over;
    }
}

typedef struct { Matrix A; Index order; Matrix T; Vector b; Matrix B; } Solve;

ENTRY solve_equations(const Solve *a)
{
    int64_t n = a->A.rows;
    factor(a->A.at, a->order.at, n);
    transpose_factors(a->A.at, a->T.at, n);
    solve(a->T.at, a->order.at, a->b.at, n);
    solve_all(a->A.at, a->order.at, a->B.at, n, a->B.columns);
    return 0;
}
