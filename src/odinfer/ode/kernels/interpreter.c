/* Run the instructions of a field, with what drives it at the time. */
#include "kernels.h"

/* In the order of OPERATIONS, bytecode.py. */
enum {
    ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATE, WHOLE, POWER, EXP, LOG, SQRT, WHERE, LESS, LESS_EQUAL, GREATER,
    GREATER_EQUAL, EQUAL, NOT_EQUAL, AND, OR, NOT, MIN, MAX, ABS, SIGN, LOG10, SIN, COS, TAN, ASIN, ACOS, ATAN, SINH,
    COSH, TANH, ASINH, ACOSH, ATANH, FLOOR, CEIL
};

static double whole_power(double x, int64_t n)
{
    double y = 1.0;
    for (; n > 0; n >>= 1, x *= x)
        if (n & 1)
            y *= x;
    return y;
}

/* Run instructions (n, 5): what is done, the register it goes to, and those it is done with. */
void run(const IndexMatrix *code, double *r)
{
    const int64_t *line = code->at, *end = code->at + 5 * code->rows;
    for (; line < end; line += 5) {
        double x = r[line[2]], *z = r + line[1];
        if (line[0] == WHOLE) {
            *z = whole_power(x, line[3]);
            continue;
        }
        double y = r[line[3]];
        switch (line[0]) {
        case ADD: *z = x + y; break;
        case SUBTRACT: *z = x - y; break;
        case MULTIPLY: *z = x * y; break;
        case DIVIDE: *z = x / y; break;
        case NEGATE: *z = -x; break;
        case POWER: *z = pow(x, y); break;
        case EXP: *z = exp(x); break;
        case LOG: *z = log(x); break;
        case SQRT: *z = sqrt(x); break;
        case WHERE: *z = x != 0.0 ? y : r[line[4]]; break;
        case LESS: *z = x < y; break;
        case LESS_EQUAL: *z = x <= y; break;
        case GREATER: *z = x > y; break;
        case GREATER_EQUAL: *z = x >= y; break;
        case EQUAL: *z = x == y; break;
        case NOT_EQUAL: *z = x != y; break;
        case AND: *z = x != 0.0 && y != 0.0; break;
        case OR: *z = x != 0.0 || y != 0.0; break;
        case NOT: *z = x == 0.0; break;
        case MIN: *z = x < y || x != x ? x : y; break;
        case MAX: *z = x > y || x != x ? x : y; break;
        case ABS: *z = fabs(x); break;
        case SIGN: *z = x != x ? x : (double)((x > 0.0) - (x < 0.0)); break;
        case LOG10: *z = log10(x); break;
        case SIN: *z = sin(x); break;
        case COS: *z = cos(x); break;
        case TAN: *z = tan(x); break;
        case ASIN: *z = asin(x); break;
        case ACOS: *z = acos(x); break;
        case ATAN: *z = atan(x); break;
        case SINH: *z = sinh(x); break;
        case COSH: *z = cosh(x); break;
        case TANH: *z = tanh(x); break;
        case ASINH: *z = asinh(x); break;
        case ACOSH: *z = acosh(x); break;
        case ATANH: *z = atanh(x); break;
        case FLOOR: *z = floor(x); break;
        case CEIL: *z = ceil(x); break;
        }
    }
}

/* Input j: linear between given values, or constant after each; constant before the first and after the last. */
static double input(const Drive *drive, int64_t e, int64_t j, double t)
{
    int64_t at = e * drive->first.columns + j, count = drive->length.at[at], i = 0;
    const double *times = drive->times.at + drive->first.at[at], *values = drive->values.at + drive->first.at[at];
    for (int64_t high = count; i < high;) {
        int64_t middle = i + (high - i) / 2;
        if (times[middle] <= t)
            i = middle + 1;
        else
            high = middle;
    }
    if (i == 0)
        return values[0];
    if (i == count || drive->held.at[j])
        return values[i - 1];
    double share = (t - times[i - 1]) / (times[i] - times[i - 1]);
    return values[i - 1] + share * (values[i] - values[i - 1]);
}

/* The values f of a tape in experiment e at states x (K,); registers r have parameters. */
void evaluate(const Tape *tape, const Drive *drive, int64_t e, double t, const double *x, int64_t K, double *r, double *f)
{
    r[0] = t;
    for (int64_t k = 0; k < K; k++)
        r[1 + k] = x[k];
    if (drive->changing)
        for (int64_t j = 0; j < drive->first.columns; j++)
            r[1 + K + j] = input(drive, e, j, t);
    run(&tape->code, r);
    for (int64_t i = 0; i < tape->values.n; i++)
        f[i] = r[tape->values.at[i]];
    if (drive->infused)
        for (int64_t i = drive->infusions.at[e]; i < drive->infusions.at[e + 1]; i++)
            if (drive->begin.at[i] <= t && t < drive->end.at[i])
                f[drive->into.at[i]] += drive->rate.at[i];
}

/* Derivatives by states (K, K) and by what comes after them (K, Q), off registers that are filled. */
void slopes(const Tape *tape, const double *r, double *fx, double *ft, int64_t K, int64_t Q)
{
    for (int64_t i = 0; i < K * K; i++)
        fx[i] = 0.0;
    for (int64_t i = 0; i < K * Q; i++)
        ft[i] = 0.0;
    for (int64_t i = 0; i < tape->slopes.rows; i++) {
        const int64_t *own = tape->slopes.at + 3 * i;
        if (own[1] < K)
            fx[own[0] * K + own[1]] = r[own[2]];
        else
            ft[own[0] * Q + own[1] - K] = r[own[2]];
    }
}

typedef struct { Tape tape; Drive drive; int64_t e; Vector t; Matrix x, numbers; Vector r; Matrix found; } Values;

ENTRY values_of_tape(const Values *a)
{
    int64_t K = a->x.columns, N = a->numbers.columns;
    for (int64_t i = 0; i < a->x.rows; i++) {
        for (int64_t j = 0; j < N; j++)
            a->r.at[1 + K + j] = a->numbers.at[i * N + j];
        evaluate(&a->tape, &a->drive, a->e, a->t.at[i], a->x.at + i * K, K, a->r.at, a->found.at + i * a->found.columns);
    }
    return 0;
}

typedef struct { Tape tape; Vector r; Matrix fx, ft; } Slopes;

ENTRY slopes_of_tape(const Slopes *a)
{
    run(&a->tape.code, a->r.at);
    slopes(&a->tape, a->r.at, a->fx.at, a->ft.at, a->fx.rows, a->ft.columns);
    return 0;
}
