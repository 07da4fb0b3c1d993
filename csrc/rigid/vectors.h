// Vectors and matrices of three dimensions whose entries are numbers, or variables of a Tape.
#pragma once

#include <cstddef>

namespace lcp::rigid {

inline double value_of(double x) { return x; }

template <class T>
struct Vector {
  T entry[3];

  T& operator[](std::size_t i) { return entry[i]; }
  const T& operator[](std::size_t i) const { return entry[i]; }
};

/// Its rows.
template <class T>
struct Matrix {
  Vector<T> row[3];

  Vector<T>& operator[](std::size_t i) { return row[i]; }
  const Vector<T>& operator[](std::size_t i) const { return row[i]; }
};

/// (w, x, y, z).
template <class T>
struct Quaternion {
  T w, x, y, z;
};

/// Vector, matrix and quaternion i of those that lie one behind another at x.
template <class T>
Vector<T> vector_at(const T* x, int i) {
  return {x[3 * i], x[3 * i + 1], x[3 * i + 2]};
}
inline Matrix<double> matrix_at(const double* x, int i) {
  return {{vector_at(x, 3 * i), vector_at(x, 3 * i + 1), vector_at(x, 3 * i + 2)}};
}
template <class T>
Quaternion<T> quaternion_at(const T* x, int i) {
  return {x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]};
}

template <class T>
Vector<T> operator+(const Vector<T>& a, const Vector<T>& b) {
  return {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
}
template <class T>
Vector<T> operator-(const Vector<T>& a, const Vector<T>& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
template <class T>
Vector<T> operator-(const Vector<T>& a) {
  return {-a[0], -a[1], -a[2]};
}
template <class Factor, class T>
Vector<T> operator*(const Factor& s, const Vector<T>& a) {
  return {s * a[0], s * a[1], s * a[2]};
}
template <class T>
T dot(const Vector<T>& a, const Vector<T>& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
template <class T>
Vector<T> cross(const Vector<T>& a, const Vector<T>& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
template <class T>
Vector<T> operator*(const Matrix<T>& A, const Vector<T>& x) {
  return {dot(A[0], x), dot(A[1], x), dot(A[2], x)};
}
template <class T>
Vector<T> column(const Matrix<T>& A, std::size_t j) {
  return {A[0][j], A[1][j], A[2][j]};
}
/// A' x.
template <class T>
Vector<T> transposed_times(const Matrix<T>& A, const Vector<T>& x) {
  return {dot(column(A, 0), x), dot(column(A, 1), x), dot(column(A, 2), x)};
}

template <class T>
Vector<double> values_of(const Vector<T>& x) {
  return {value_of(x[0]), value_of(x[1]), value_of(x[2])};
}
template <class T>
Matrix<double> values_of(const Matrix<T>& A) {
  return {{values_of(A[0]), values_of(A[1]), values_of(A[2])}};
}

/// The symmetric part.
template <class T>
Matrix<T> symmetric(const Matrix<T>& A) {
  Matrix<T> part;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) part[i][j] = 0.5 * (A[i][j] + A[j][i]);
  }
  return part;
}

/// By Cramer's rule.
template <class T>
Matrix<T> inverse(const Matrix<T>& A) {
  const Vector<T> first = column(A, 0), second = column(A, 1), third = column(A, 2);
  const Vector<T> across = cross(second, third);
  const T scale = 1 / dot(first, across);
  return {{scale * across, scale * cross(third, first), scale * cross(first, second)}};
}

/// The solution of A x = b by Cramer's rule.
template <class T>
Vector<T> solve(const Matrix<T>& A, const Vector<T>& b) {
  const Vector<T> first = column(A, 0), second = column(A, 1), third = column(A, 2);
  const Vector<T> across = cross(second, third), turned = cross(first, b);
  const T determinant = dot(first, across);
  // det(first, b, third) = third.(first x b), and det(first, second, b) = second.(b x first).
  return {dot(b, across) / determinant, dot(third, turned) / determinant, -dot(second, turned) / determinant};
}

}  // namespace lcp::rigid
