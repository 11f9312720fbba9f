/* Types and functions that the kernels share.

   Every entry point takes one pointer to its arguments, laid out by library.py: a number takes eight bytes; an array
   is a pointer and its shape; a NamedTuple is its fields in their order. Arrays are contiguous, the last index fastest.
   Kernels allocate nothing: arrays to work on are arguments. */
#ifndef ODINFER_KERNELS_H
#define ODINFER_KERNELS_H

#include <math.h>
#include <stdint.h>

#ifdef _WIN32
#define ENTRY __declspec(dllexport) int64_t
#else
#define ENTRY __attribute__((visibility("default"))) int64_t
#endif

typedef struct { double *at; int64_t n; } Vector;
typedef struct { double *at; int64_t rows, columns; } Matrix;
typedef struct { double *at; int64_t n, rows, columns; } Matrices;
typedef struct { double *at; int64_t m, n, rows, columns; } MatrixTable;
typedef struct { int64_t *at; int64_t n; } Index;
typedef struct { int64_t *at; int64_t rows, columns; } IndexMatrix;
typedef struct { uint8_t *at; int64_t n; } Mask;
typedef struct { uint8_t *at; int64_t rows, columns; } MaskMatrix;

/* Tape of bytecode.py, Drive of forcing.py, Step of rodas.py. */
typedef struct { IndexMatrix code; Vector registers; Index values; IndexMatrix slopes; } Tape;
typedef struct {
    int64_t changing, infused;
    Mask held;
    IndexMatrix first, length;
    Vector times, values;
    Index infusions, into;
    Vector begin, end, rate;
} Drive;
typedef struct { Vector end, error; Matrix bend, W, T; Index order; Matrix U; Vector f; } Step;

/* As those of Python: the first argument if either is not a number. */
static inline double least(double a, double b) { return b < a ? b : a; }
static inline double most(double a, double b) { return b > a ? b : a; }

void run(const IndexMatrix *code, double *r);
void evaluate(const Tape *tape, const Drive *drive, int64_t e, double t, const double *x, int64_t K, double *r, double *f);
void slopes(const Tape *tape, const double *r, double *fx, double *ft, int64_t K, int64_t Q);

void factor(double *A, int64_t *order, int64_t n);
void transpose_factors(const double *A, double *T, int64_t n);
void solve(const double *T, const int64_t *order, double *b, int64_t n);
void solve_all(const double *A, const int64_t *order, double *B, int64_t n, int64_t m);

/* One step of length h from x (K,) at time t; `low` and `high` are between which times the field is evaluated. */
typedef struct {
    const Tape *tape;
    const Drive *drive;
    int64_t e, K;
    double t, low, high;
    const double *x, *f0, *fx, *ft;
    double *r;
} Start;
void rodas_step(const Start *start, double h, const Step *to);

double shortened(const Start *start, double h, const Step *to, const Tape *conditions, const Drive *plain,
                 double *r_conditions, uint8_t *held, double *truth, double *at, int64_t T);
int is_new(const double *truth, const uint8_t *held, int64_t T);

#endif
