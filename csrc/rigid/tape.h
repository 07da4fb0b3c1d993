// Derivatives of what is computed with numbers, in reverse and in forward mode: a tape of the operations, each with its
// derivatives in the one or two numbers that it takes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace lcp::rigid {

/// Allocates only where it becomes longer than it ever was.
class Tape {
 public:
  Tape() : nodes_(1), derivatives_(1) {}

  void clear() { size_ = 1; }

  /// The number of nodes. Node 0 stands for all constants.
  int size() const { return size_; }

  /// Adds a number with these derivatives in the numbers of two nodes; returns its node.
  int record(int first, double by_first, int second = 0, double by_second = 0) {
    if (static_cast<std::size_t>(size_) == nodes_.size()) grow();
    nodes_[size_] = {first, second, by_first, by_second};
    return size_++;
  }

  /// Makes all derivatives 0. No node may be added from here until the tape is cleared.
  void begin_sweep() { begin(1); }

  /// In reverse mode the derivative of a sum of results in the number of a node, in forward mode that of the number in
  /// a direction.
  double derivative(int node) const { return derivatives_[node]; }
  void add(int node, double derivative) { derivatives_[node] += derivative; }

  /// Passes the derivatives of the nodes begin .. end - 1 on to those that they were computed from.
  void reverse(int end, int begin) {
    for (int k = end - 1; k >= begin; --k) {
      const Node& node = nodes_[k];
      const double derivative = derivatives_[k];
      derivatives_[node.first] += derivative * node.by_first;
      derivatives_[node.second] += derivative * node.by_second;
    }
  }

  /// Computes the derivatives of the nodes begin .. end - 1 from those that they were computed from. Those of numbers
  /// that were computed from none stay.
  void forward(int begin, int end) { forward<1>(begin, end); }

  /// The derivatives in as many directions, which begin_sweep_of_many makes 0, have one forward sweep in common.
  static constexpr int kMany = 8;
  void begin_sweep_of_many() { begin(kMany); }
  double* derivatives(int node) { return derivatives_.data() + kMany * static_cast<std::ptrdiff_t>(node); }
  void forward_many(int begin, int end) { forward<kMany>(begin, end); }

 private:
  struct Node {
    int first, second;
    double by_first, by_second;
  };

  [[gnu::noinline]] void grow() { nodes_.resize(2 * nodes_.size()); }

  void begin(int count) {
    if (derivatives_.size() < count * nodes_.size()) derivatives_.resize(count * nodes_.size());
    std::fill_n(derivatives_.begin(), count * size_, 0.0);
  }

  template <int count>
  void forward(int begin, int end) {
    for (int k = begin; k < end; ++k) {
      const Node& node = nodes_[k];
      if (node.first == 0) continue;
      const double *const first = derivatives_.data() + std::ptrdiff_t{count} * node.first, *const second =
                                                                                                derivatives_.data() +
                                                                                                std::ptrdiff_t{count} *
                                                                                                    node.second;
      double derivative[count];
      for (int i = 0; i < count; ++i) derivative[i] = first[i] * node.by_first + second[i] * node.by_second;
      std::copy_n(derivative, count, derivatives_.data() + std::ptrdiff_t{count} * k);
    }
  }

  std::vector<Node> nodes_;
  std::vector<double> derivatives_;
  int size_ = 1;
};

/// A number on a tape, or a constant.
struct Variable {
  double value = 0;
  int node = 0;
  Tape* tape = nullptr;  ///< nullptr for a constant

  Variable() = default;
  Variable(double constant) : value(constant) {}  // NOLINT(google-explicit-constructor): formulas have constants
  Variable(double number, int at, Tape* on) : value(number), node(at), tape(on) {}

  /// A number that the others are computed from.
  static Variable independent(Tape& tape, double value) { return {value, tape.record(0, 0), &tape}; }
};

inline double value_of(const Variable& x) { return x.value; }

/// f(x) for its value and derivative. Where that is 0, as that of a product with 0, f(x) counts as a constant.
inline Variable function(const Variable& x, double value, double slope) {
  if (x.tape == nullptr || slope == 0) return value;
  return {value, x.tape->record(x.node, slope), x.tape};
}

/// The same of numbers.
inline double function(double, double value, double) { return value; }

inline Variable function(const Variable& a, const Variable& b, double value, double by_a, double by_b) {
  if (a.tape == nullptr) return function(b, value, by_b);
  if (b.tape == nullptr) return function(a, value, by_a);
  return {value, a.tape->record(a.node, by_a, b.node, by_b), a.tape};
}

inline Variable operator+(const Variable& a, const Variable& b) {
  // A constant changes the value alone.
  if (a.tape == nullptr) return {a.value + b.value, b.node, b.tape};
  if (b.tape == nullptr) return {a.value + b.value, a.node, a.tape};
  return function(a, b, a.value + b.value, 1, 1);
}
inline Variable operator-(const Variable& a) { return function(a, -a.value, -1); }
inline Variable operator-(const Variable& a, const Variable& b) {
  if (b.tape == nullptr) return {a.value - b.value, a.node, a.tape};
  return function(a, b, a.value - b.value, 1, -1);
}
inline Variable operator*(const Variable& a, const Variable& b) {
  return function(a, b, a.value * b.value, b.value, a.value);
}
inline Variable operator/(const Variable& a, const Variable& b) {
  const double ratio = a.value / b.value;
  return function(a, b, ratio, 1 / b.value, -ratio / b.value);
}
inline Variable sqrt(const Variable& x) {
  const double root = std::sqrt(x.value);
  return function(x, root, 0.5 / root);
}
inline Variable cos(const Variable& x) { return function(x, std::cos(x.value), -std::sin(x.value)); }
inline Variable sin(const Variable& x) { return function(x, std::sin(x.value), std::cos(x.value)); }

}  // namespace lcp::rigid
