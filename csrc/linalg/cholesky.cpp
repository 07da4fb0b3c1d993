#include "linalg/cholesky.h"

#include <algorithm>

namespace lcp::linalg {

// Memory that is not initialised, since a banded matrix uses little of it.
std::unique_ptr<Cholesky::Line[]> Cholesky::lines(std::size_t numbers) {
  return std::unique_ptr<Line[]>(new Line[numbers / 8 + 1]);
}

Cholesky::Cholesky(int n) : kernels_(kernels().cholesky) {
  const auto width = static_cast<std::size_t>(kernels_.width);
  const std::size_t count = (static_cast<std::size_t>(n) + width - 1) / width;
  entries_ = lines(width * width * count * (count + 1) / 2);
  lower_ = lines(width * width * count);
  inverse_ = lines(width * count);
  x_ = lines(width * count);
  panels_.resize(count);
}

bool Cholesky::factor(const Rows& M, const int* index, int k) {
  k_ = k;
  const int width = kernels_.width;
  double* next = entries_[0].numbers;
  for (int base = 0; base < k; base += width) {
    int column = index[base];
    for (int i = base; i < std::min(base + width, k); ++i) column = std::min(column, M.spans[index[i]].first);
    auto first = static_cast<int>(std::lower_bound(index, index + base, column) - index);
    first -= first % width;
    panels_[base / width] = {next, first};
    next += static_cast<std::ptrdiff_t>(base + width - first) * width;
  }
  return kernels_.factor(M, k, index, panels_.data(), lower_[0].numbers, inverse_[0].numbers);
}

void Cholesky::solve(double* x) {
  const int whole = (k_ + kernels_.width - 1) / kernels_.width * kernels_.width;
  double* const padded = x_[0].numbers;
  std::fill(std::copy_n(x, k_, padded), padded + whole, 0.0);
  kernels_.solve(k_, panels_.data(), inverse_[0].numbers, lower_[0].numbers, padded);
  std::copy_n(padded, k_, x);
}

}  // namespace lcp::linalg
