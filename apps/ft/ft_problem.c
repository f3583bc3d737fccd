/*
 * ft_problem.c - definition of NAS FT: classes, initial values, evolution, checksums.
 *
 * Owns      the tables of reference values
 * Threads   no state: any
 * Uses      no communication library
 * See       NAS Parallel Benchmarks 3, kernel FT
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "ft.h"

static const double reference_s[][2] = {
    { 554.6087004964, 484.5363331978 }, { 554.6385409189, 486.5304269511 },
    { 554.6148406171, 488.3910722336 }, { 554.5423607415, 490.1273169046 },
    { 554.4255039624, 491.7475857993 }, { 554.2683411902, 493.2597244941 },
};

static const double reference_w[][2] = {
    { 567.3612178944, 529.3246849175 }, { 563.1436885271, 528.2149986629 },
    { 559.4024089970, 527.0996558037 }, { 556.0698047020, 526.0027904925 },
    { 553.0898991250, 524.9400845633 }, { 550.4159734538, 523.9212247086 },
};

static const double reference_a[][2] = {
    { 504.6735008193, 511.4047905510 }, { 505.9412319734, 509.8809666433 },
    { 506.9376896287, 509.8144042213 }, { 507.7892868474, 510.1336130759 },
    { 508.5233095391, 510.4914655194 }, { 509.1487099959, 510.7917842803 },
};

static const double reference_b[][2] = {
    { 517.7643571579, 507.7803458597 }, { 515.4521291263, 508.8249431599 },
    { 514.6409228649, 509.6208912659 }, { 514.2378756213, 510.1023387619 },
    { 513.9626667737, 510.3976610617 }, { 513.7423460082, 510.5948019802 },
    { 513.5547056878, 510.7404165783 }, { 513.3910925466, 510.8576573661 },
    { 513.2470705390, 510.9577278523 }, { 513.1197729984, 511.0460304483 },
    { 513.0070319283, 511.1252433800 }, { 512.9070537032, 511.1968077718 },
    { 512.8182883502, 511.2616233064 }, { 512.7393733383, 511.3203605551 },
    { 512.6691062020, 511.3735928093 }, { 512.6064276004, 511.4218460548 },
    { 512.5504076570, 511.4656139760 }, { 512.5002331720, 511.5053595966 },
    { 512.4551951846, 511.5415130407 }, { 512.4146770029, 511.5744692211 },
};

static const double reference_c[][2] = {
    { 519.5078707457, 514.9019699238 }, { 515.5422171134, 512.7578201997 },
    { 514.4678022222, 512.2251847514 }, { 514.0150594328, 512.1090289018 },
    { 513.7550426810, 512.1143685824 }, { 513.5811056728, 512.1496764568 },
    { 513.4569343165, 512.1870921893 }, { 513.3651975661, 512.2193250322 },
    { 513.2955192805, 512.2454735794 }, { 513.2410471738, 512.2663649603 },
    { 513.1971141679, 512.2830879827 }, { 513.1605205716, 512.2965869718 },
    { 513.1290734194, 512.3075927445 }, { 513.1012720314, 512.3166486553 },
    { 513.0760908195, 512.3241541685 }, { 513.0528295923, 512.3304037599 },
    { 513.0310107773, 512.3356167976 }, { 513.0103090133, 512.3399592211 },
    { 512.9905029333, 512.3435588985 }, { 512.9714421109, 512.3465164008 },
};

static const struct ft_class classes[] = {
    { 'S', 64, 64, 64, 6, reference_s },     { 'W', 128, 128, 32, 6, reference_w },
    { 'A', 256, 256, 128, 6, reference_a },  { 'B', 512, 256, 256, 20, reference_b },
    { 'C', 512, 512, 512, 20, reference_c },
};

const struct ft_class *ft_class_find(const char *name)
{
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        if (name[0] == classes[i].name && name[1] == '\0')
            return &classes[i];
    return NULL;
}

const char *ft_method_name(enum ft_method method)
{
    static const char *const names[FT_METHODS] = { "exchange", "slabs", "pencils" };

    return names[method];
}

size_t ft_class_points(const struct ft_class *cls)
{
    return (size_t)cls->nx * (size_t)cls->ny * (size_t)cls->nz;
}

/*
 * The generator is x(k+1) = 5^13 x(k) mod 2^46. The product of two 46-bit numbers overflows
 * 64 bits, but its lowest 46 bits, the only ones needed, are right.
 */
#define LCG_FACTOR UINT64_C(1220703125)
#define LCG_SEED   UINT64_C(314159265)
#define LCG_MASK   ((UINT64_C(1) << 46) - 1)

/* Returns x(count), by squaring the factor. */
static uint64_t lcg_jump(uint64_t count)
{
    uint64_t x = LCG_SEED;

    for (uint64_t factor = LCG_FACTOR; count != 0; count >>= 1) {
        if (count & 1)
            x = x * factor & LCG_MASK;
        factor = factor * factor & LCG_MASK;
    }
    return x;
}

static double lcg_next(uint64_t *x)
{
    *x = *x * LCG_FACTOR & LCG_MASK;
    return (double)*x * 0x1p-46;
}

void ft_problem_start(const struct ft_class *cls, struct ft_split y, int rank, ft_value *field,
                      size_t y_stride, size_t z_stride)
{
    int first = ft_split_first(y, rank);
    int count = ft_split_count(y, rank);

    for (int z = 0; z < cls->nz; z++) {
        /* The sequence runs over x, then y, then z: jump to this rank's first row of this z. */
        uint64_t row = (uint64_t)z * (uint64_t)cls->ny + (uint64_t)first;
        uint64_t seed = lcg_jump(2 * row * (uint64_t)cls->nx);

        for (int j = 0; j < count; j++) {
            ft_value *values = field + (size_t)z * z_stride + (size_t)j * y_stride;

            for (int i = 0; i < cls->nx; i++) {
                double re = lcg_next(&seed);
                double im = lcg_next(&seed);

                values[i] = re + im * I;
            }
        }
    }
}

void ft_problem_factors(int n, int step, double *factor)
{
    const double alpha = 1e-6;
    const double pi = 3.14159265358979323846;

    for (int i = 0; i < n; i++) {
        double mode = i < n / 2 ? i : i - n;

        factor[i] = exp(-4 * alpha * pi * pi * step * mode * mode);
    }
}

double ft_problem_error(const struct ft_class *cls, int step, ft_value checksum)
{
    const double *ref = cls->reference[step - 1];
    double re = fabs((creal(checksum) - ref[0]) / ref[0]);
    double im = fabs((cimag(checksum) - ref[1]) / ref[1]);

    /* fmax() would ignore a NaN and so hide a wrong checksum. */
    return !(re <= im) ? re : im;
}

/* Published counts: messages of one rank in one transpose, for four ranks. */
static const struct {
    char cls;
    uint64_t messages[FT_METHODS];
    uint64_t kib[FT_METHODS];
} published[] = {
    { 'S', { 4, 64, 1024 }, { 256, 16, 1 } },
    { 'W', { 4, 32, 1024 }, { 512, 64, 2 } },
    { 'A', { 4, 128, 8192 }, { 8192, 256, 4 } },
    { 'B', { 4, 256, 16384 }, { 32768, 512, 8 } },
};

bool ft_problem_counts(const struct ft_class *cls, enum ft_method method, int ranks,
                       struct ft_counts *counts_out)
{
    for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
        uint64_t bytes = published[i].kib[method] * 1024;

        if (ranks != 4 || published[i].cls != cls->name)
            continue;
        counts_out->messages = published[i].messages[method];
        counts_out->smallest = counts_out->largest = bytes;
        counts_out->bytes = counts_out->messages * bytes;
        return true;
    }
    return false;
}
