/* Edge-enhancing diffusion as one writes it down from the formulas: one thread, one pass after the other
   over whole images, the nine entries of the stencil stored for every pixel and then applied.

   Images have a border of one mirrored pixel, so that only the Gaussian has to fold its indices. Cell (i, j)
   has pixel (i, j) at its lower right corner. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PIXEL(i, j) ((size_t)((i) + 1) * (width + 2) + (j) + 1)
#define CELL(i, j) ((size_t)(i) * (width + 1) + (j))
#define LONGEST_RADIUS 64

static int mirrored(int i, int n)
{
    return i < 0 ? -1 - i : i < n ? i : 2 * n - 1 - i;
}

static void mirror_border(float *u, int height, int width)
{
    for (int i = 0; i < height; i++) {
        u[PIXEL(i, -1)] = u[PIXEL(i, 0)];
        u[PIXEL(i, width)] = u[PIXEL(i, width - 1)];
    }
    for (int j = -1; j <= width; j++) {
        u[PIXEL(-1, j)] = u[PIXEL(0, j)];
        u[PIXEL(height, j)] = u[PIXEL(height - 1, j)];
    }
}

static void smooth(const float *restrict u, float *restrict between, float *restrict out, int height,
                   int width, const float *restrict kernel, int radius)
{
    for (int i = 0; i < height; i++) {
        const float *row = u + PIXEL(i, 0);
        for (int j = 0; j < width; j++) {
            float sum = 0;
            for (int k = -radius; k <= radius; k++)
                sum += kernel[k + radius] * row[mirrored(j + k, width)];
            between[PIXEL(i, j)] = sum;
        }
    }
    for (int i = 0; i < height; i++)
        for (int j = 0; j < width; j++) {
            float sum = 0;
            for (int k = -radius; k <= radius; k++)
                sum += kernel[k + radius] * between[PIXEL(mirrored(i + k, height), j)];
            out[PIXEL(i, j)] = sum;
        }
    mirror_border(out, height, width);
}

/* D = I - (1 - g) / |grad u|^2 * grad u grad u', with g = 1 - exp(-3.31488 / (|grad u| / contrast)^8). */
static void diffusion_tensors(const float *restrict u, float *restrict a, float *restrict b,
                              float *restrict c, int height, int width, float contrast)
{
    for (int i = 0; i <= height; i++)
        for (int j = 0; j <= width; j++) {
            float u00 = u[PIXEL(i - 1, j - 1)], u01 = u[PIXEL(i - 1, j)];
            float u10 = u[PIXEL(i, j - 1)], u11 = u[PIXEL(i, j)];
            float u_x = 0.5f * (u01 - u00 + u11 - u10);
            float u_y = 0.5f * (u10 - u00 + u11 - u01);
            float slope2 = u_x * u_x + u_y * u_y;
            float r = slope2 / (contrast * contrast);
            r = r > 0.52f ? r : 0.52f; /* below it the exponential is far below rounding */
            float loss = expf(-3.31488f / (r * r * r * r)) / (r * contrast * contrast);
            a[CELL(i, j)] = 1 - loss * u_x * u_x;
            b[CELL(i, j)] = -loss * u_x * u_y;
            c[CELL(i, j)] = 1 - loss * u_y * u_y;
        }
}

/* The free parameter of the stencil family. */
static void deltas(const float *restrict a, const float *restrict b, const float *restrict c,
                   float *restrict d, int height, int width, float alpha, float gamma)
{
    for (size_t cell = 0; cell < CELL(height + 1, 0); cell++)
        d[cell] = alpha * (a[cell] + c[cell]) + gamma * (1 - 2 * alpha) * fabsf(b[cell]);
}

static void stencil_entries(const float *restrict a, const float *restrict b, const float *restrict c,
                            const float *restrict d, float *restrict stencil, int height, int width)
{
    for (int i = 0; i < height; i++)
        for (int j = 0; j < width; j++) {
            size_t nw = CELL(i, j), ne = CELL(i, j + 1), sw = CELL(i + 1, j), se = CELL(i + 1, j + 1);
            float d_nw = d[nw], d_ne = d[ne], d_sw = d[sw], d_se = d[se];
            float *s = stencil + 9 * ((size_t)i * width + j);
            s[0] = 0.5f * (d_nw + b[nw]);
            s[1] = 0.5f * (c[nw] - d_nw + c[ne] - d_ne);
            s[2] = 0.5f * (d_ne - b[ne]);
            s[3] = 0.5f * (a[nw] - d_nw + a[sw] - d_sw);
            s[5] = 0.5f * (a[ne] - d_ne + a[se] - d_se);
            s[6] = 0.5f * (d_sw - b[sw]);
            s[7] = 0.5f * (c[sw] - d_sw + c[se] - d_se);
            s[8] = 0.5f * (d_se + b[se]);
            s[4] = -(s[0] + s[1] + s[2] + s[3] + s[5] + s[6] + s[7] + s[8]);
        }
}

static void explicit_step(const float *restrict u, const float *restrict stencil, float *restrict out,
                          int height, int width, float step)
{
    for (int i = 0; i < height; i++)
        for (int j = 0; j < width; j++) {
            const float *s = stencil + 9 * ((size_t)i * width + j);
            float sum = 0;
            for (int y = -1; y <= 1; y++)
                for (int x = -1; x <= 1; x++)
                    sum += s[3 * (y + 1) + x + 1] * u[PIXEL(i + y, j + x)];
            out[PIXEL(i, j)] = u[PIXEL(i, j)] + step * sum;
        }
    mirror_border(out, height, width);
}

/* The image, height * width, is overwritten by the result. Returns 0; 1 if it is smaller than the Gaussian's
   radius; 2 if memory is short. */
int edge_enhancing(float *image, int height, int width, int steps, float sigma, float contrast, float step,
                   float alpha, float gamma)
{
    int radius = (int)(4 * sigma + 0.5f);
    float kernel[2 * LONGEST_RADIUS + 1], sum = 0;
    if (radius > LONGEST_RADIUS || radius > height || radius > width)
        return 1;
    for (int k = -radius; k <= radius; k++)
        sum += kernel[k + radius] = expf(-0.5f * k * k / (sigma * sigma));
    for (int k = 0; k <= 2 * radius; k++)
        kernel[k] /= sum;

    size_t pixels = (size_t)(height + 2) * (width + 2), cells = (size_t)(height + 1) * (width + 1);
    float *memory = malloc((4 * pixels + 4 * cells + 9 * (size_t)height * width) * sizeof(float));
    if (memory == NULL)
        return 2;
    float *u = memory, *next = u + pixels, *between = next + pixels, *smoothed = between + pixels;
    float *a = smoothed + pixels, *b = a + cells, *c = b + cells, *d = c + cells;
    float *stencil = d + cells;

    for (int i = 0; i < height; i++)
        memcpy(u + PIXEL(i, 0), image + (size_t)i * width, width * sizeof(float));
    mirror_border(u, height, width);
    for (int n = 0; n < steps; n++) {
        smooth(u, between, smoothed, height, width, kernel, radius);
        diffusion_tensors(smoothed, a, b, c, height, width, contrast);
        deltas(a, b, c, d, height, width, alpha, gamma);
        stencil_entries(a, b, c, d, stencil, height, width);
        explicit_step(u, stencil, next, height, width, step);
        float *old = u;
        u = next;
        next = old;
    }
    for (int i = 0; i < height; i++)
        memcpy(image + (size_t)i * width, u + PIXEL(i, 0), width * sizeof(float));
    free(memory);
    return 0;
}
