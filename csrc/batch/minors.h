// The minors of a small matrix, one matrix in each lane.
#pragma once

#include <bit>

#include "simd/lanes.h"

namespace lcp::batch::LCP_ISA {

using namespace simd::LCP_ISA;

constexpr int choose(int n, int k) {
  int result = 1;
  for (int i = 0; i < k; ++i) result = result * (n - i) / (i + 1);
  return result;
}

// The position of a set, written as bits, among the sets of its size.
constexpr int rank_among_equals(unsigned set) {
  int rank = 0;
  for (unsigned other = 0; other < set; ++other) rank += std::popcount(other) == std::popcount(set) ? 1 : 0;
  return rank;
}

constexpr bool contains(unsigned set, int element) { return (set >> element & 1) != 0; }
constexpr bool odd_before(unsigned set, int element) { return std::popcount(set & ((1U << element) - 1)) % 2 == 1; }
constexpr bool odd_after(unsigned set, int element) { return std::popcount(set >> (element + 1)) % 2 == 1; }

// All minors of an N x N matrix, rows and columns as sets of bits, by Laplace's expansion from small to large.
template <int N, class V>
class Minors {
 public:
  // m: row-major.
  LCP_INLINE void set(const V* m) {
    for (int k = 0; k < N * N; ++k) value_[k] = m[k];
    unroll<N - 1>([&](auto smaller) LCP_INLINE_LAMBDA {
      unroll<(1 << N)>([&](auto rows) LCP_INLINE_LAMBDA {
        if constexpr (std::popcount(unsigned{rows}) == smaller + 2) {
          unroll<(1 << N)>([&](auto columns) LCP_INLINE_LAMBDA {
            if constexpr (std::popcount(unsigned{columns}) == smaller + 2) {
              constexpr int target = slot(unsigned{rows}, unsigned{columns});
              value_[target] = expand<unsigned{rows}, unsigned{columns}>();
            }
          });
        }
      });
    });
  }

  template <unsigned rows, unsigned columns>
  LCP_INLINE const V& at() const {
    constexpr int index = slot(rows, columns);
    return value_[index];
  }

  // The minor of [M | q] with q as its last column, or its negative.
  template <unsigned rows, unsigned columns, bool negative>
  LCP_INLINE V with(const V* q) const {
    constexpr int first = std::countr_zero(rows);
    if constexpr (columns == 0) {
      return negative ? -q[first] : q[first];
    } else {
      // The signs of the terms alternate; start with a positive one.
      constexpr bool first_is_negative = (std::popcount(rows) % 2 == 0) != negative;
      constexpr int lead = first_is_negative ? std::countr_zero(rows & (rows - 1)) : first;
      V sum = q[lead] * at<rows & ~(1U << lead), columns>();
      unroll<N>([&](auto r) LCP_INLINE_LAMBDA {
        if constexpr (contains(rows, r) && r != lead) {
          const V& rest = at<rows & ~(1U << r), columns>();
          sum = odd_before(rows, r) != first_is_negative ? subtract_product(q[r], rest, sum)
                                                         : multiply_add(q[r], rest, sum);
        }
      });
      return sum;
    }
  }

 private:
  static constexpr int first_slot(int size) {
    int slot = 0;
    for (int k = 1; k < size; ++k) slot += choose(N, k) * choose(N, k);
    return slot;
  }
  static constexpr int slot(unsigned rows, unsigned columns) {
    const int size = std::popcount(rows);
    return first_slot(size) + rank_among_equals(rows) * choose(N, size) + rank_among_equals(columns);
  }

  // Expands a minor along its first row.
  template <unsigned rows, unsigned columns>
  LCP_INLINE V expand() const {
    constexpr unsigned row = rows & -rows;
    constexpr int first = std::countr_zero(columns);
    V sum = at<row, (1U << first)>() * at<rows & ~row, columns & ~(1U << first)>();
    unroll<N>([&](auto c) LCP_INLINE_LAMBDA {
      if constexpr (c > first && contains(columns, c)) {
        const V& entry = at<row, (1U << c)>();
        const V& rest = at<rows & ~row, columns & ~(1U << c)>();
        sum = odd_before(columns, c) ? subtract_product(entry, rest, sum) : multiply_add(entry, rest, sum);
      }
    });
    return sum;
  }

  V value_[first_slot(N + 1)];
};

}  // namespace lcp::batch::LCP_ISA
