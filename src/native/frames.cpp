// Orthogonal iteration on small tensors: `odeco.decomposition.orthogonal`, whose calls cost more than their flops there.
#include <math.h>

#include "kernels.hpp"
#include "vectors.hpp"

namespace odeco::ODECO_ISA {
namespace {

constexpr double NEGLIGIBLE = 1e-12, SINGULAR = 1e-10;

// out (n^(order - 1),) = T(I, .., I, v) of T (n^order,).
void contract(const double* tensor, Index size, const double* vector, Index n, double* out) {
    for (Index i = 0; i < size; ++i) {
        double sum = 0;
        for (Index c = 0; c < n; ++c) sum += tensor[i * n + c] * vector[c];
        out[i] = sum;
    }
}

// Plane rotations until nothing is left beside the diagonal: eigenvalues there, eigenvectors in columns.
void diagonalize(double* matrix, Index n, double* vectors) {
    for (Index i = 0; i < n * n; ++i) vectors[i] = i % (n + 1) == 0;
    for (int sweep = 0; sweep < 30; ++sweep) {
        double beside = 0, trace = 0;
        for (Index i = 0; i < n; ++i)
            for (Index j = 0; j < n; ++j) (i == j ? trace : beside) += matrix[i * n + j] * matrix[i * n + j];
        if (!(beside > 1e-32 * trace)) return;
        for (Index p = 0; p < n; ++p)
            for (Index q = p + 1; q < n; ++q) {
                const double between = matrix[p * n + q];
                if (between == 0) continue;
                const double slope = (matrix[q * n + q] - matrix[p * n + p]) / (2 * between);
                const double t = (slope >= 0 ? 1 : -1) / (fabs(slope) + sqrt(slope * slope + 1));
                const double c = 1 / sqrt(t * t + 1), s = t * c;
                for (Index i = 0; i < n; ++i) {
                    const double a = matrix[i * n + p], b = matrix[i * n + q];
                    matrix[i * n + p] = c * a - s * b;
                    matrix[i * n + q] = s * a + c * b;
                }
                for (Index i = 0; i < n; ++i) {
                    const double a = matrix[p * n + i], b = matrix[q * n + i];
                    matrix[p * n + i] = c * a - s * b;
                    matrix[q * n + i] = s * a + c * b;
                    const double x = vectors[i * n + p], y = vectors[i * n + q];
                    vectors[i * n + p] = c * x - s * y;
                    vectors[i * n + q] = s * x + c * y;
                }
            }
    }
}

// left' right, of columns: (n, r)' (n, s).
void products(const double* left, const double* right, Index n, Index r, double* out) {
    for (Index i = 0; i < r * r; ++i) out[i] = 0;
    for (Index a = 0; a < n; ++a)
        for (Index i = 0; i < r; ++i)
            for (Index j = 0; j < r; ++j) out[i * r + j] += left[a * r + i] * right[a * r + j];
}

void multiply(const double* left, const double* right, Index n, Index r, double* out) {
    for (Index a = 0; a < n; ++a)
        for (Index j = 0; j < r; ++j) {
            double sum = 0;
            for (Index i = 0; i < r; ++i) sum += left[a * r + i] * right[i * r + j];
            out[a * r + j] = sum;
        }
}

struct Frames {
    const SmallTensor& tensor;
    const Index n, r;
    Scratch<double> room, other, column, gram, vectors, root, factor;

    Frames(const SmallTensor& tensor_, Index r_)
        : tensor(tensor_), n(tensor_.n), r(r_), room(tensor_.size / n), other(tensor_.size / n), column(n), gram(r * r),
          vectors(r * r), root(r * r), factor(n * r) {}

    // T(I, v, .., v) of each column.
    void map(const double* frame, double* out) {
        for (Index j = 0; j < r; ++j) {
            for (Index a = 0; a < n; ++a) column[a] = frame[a * r + j];
            const double* from = tensor.data;
            double *to = room, *next = other;
            Index size = tensor.size;
            for (Index left = tensor.order - 1; left > 0; --left) {
                size /= n;
                contract(from, size, column, n, to);
                from = to;
                to = next;
                next = const_cast<double*>(from);
            }
            for (Index a = 0; a < n; ++a) out[a * r + j] = from[a];
        }
    }

    // The orthonormal polar factor, in place; false where the matrix is close to singular.
    bool polar(double* matrix) {
        products(matrix, matrix, n, r, gram);
        diagonalize(gram, r, vectors);
        double least = HUGE_VAL, most = -HUGE_VAL;
        for (Index i = 0; i < r; ++i) {
            least = smaller(least, gram[i * r + i]);
            most = larger(most, gram[i * r + i]);
        }
        if (!(least > SINGULAR * most && most > 0)) return false;
        for (Index i = 0; i < r; ++i)
            for (Index j = 0; j < r; ++j) {
                double sum = 0;
                for (Index c = 0; c < r; ++c) sum += vectors[i * r + c] * vectors[j * r + c] / sqrt(gram[c * r + c]);
                root[i * r + j] = sum;
            }
        multiply(matrix, root, n, r, factor);
        products(factor, factor, n, r, gram);  // one step of Newton and Schulz against rounding
        for (Index i = 0; i < r * r; ++i) gram[i] = 1.5 * (i % (r + 1) == 0) - 0.5 * gram[i];
        multiply(factor, gram, n, r, matrix);
        return true;
    }
};

double largest_of(const double* values, Index size) {
    double most = 0;
    for (Index i = 0; i < size; ++i) most = larger(most, fabs(values[i]));
    return most;
}

FrameEnd iterate_frame(const SmallTensor& tensor, Index r, const FrameRule& rule, double* frame, double* values,
                       double* mapped) {
    Frames frames(tensor, r);
    const Index n = tensor.n;
    Scratch<double> moved(n * r), strengths(r);
    double change = HUGE_VAL;
    Index taken = 0;
    while (taken < rule.n_iter && change > rule.tol) {
        ++taken;
        frames.map(frame, mapped);
        for (Index j = 0; j < r; ++j) {
            values[j] = 0;
            for (Index a = 0; a < n; ++a) values[j] += frame[a * r + j] * mapped[a * r + j];
            const double towards = values[j] < 0 ? -rule.shift : rule.shift;
            strengths[j] = values[j] + towards;
            for (Index a = 0; a < n; ++a) moved[a * r + j] = mapped[a * r + j] + towards * frame[a * r + j];
        }
        const double strongest = largest_of(strengths, r), unit = largest_of(moved, n * r) * strongest;
        for (Index i = 0; i < n * r; ++i) moved[i] *= strengths[i % r] / (unit > 0 ? unit : 1);
        if (!frames.polar(moved)) return {0, change};
        change = 0;
        for (Index j = 0; j < r; ++j) {
            double sum = 0;
            for (Index a = 0; a < n; ++a) sum += (moved[a * r + j] - frame[a * r + j]) * (moved[a * r + j] - frame[a * r + j]);
            // Columns whose value is rounding have no direction to settle in.
            if (fabs(strengths[j]) > NEGLIGIBLE * strongest) change = larger(change, sqrt(sum));
        }
        for (Index i = 0; i < n * r; ++i) frame[i] = moved[i];
    }
    return {taken, change};
}

}  // namespace

const FrameKernels frames{iterate_frame};

}  // namespace odeco::ODECO_ISA
