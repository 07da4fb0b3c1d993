// The derivative of a step from its formulas, by a tape.
#pragma once

#include <cstddef>
#include <memory>

#include "lcs/lanes.h"
#include "systems/tape.h"

namespace lcp::systems::LCP_ISA {

using lcs::LCP_ISA::Workspace;

// The numbers that a step is computed from, on a tape, and the result of System::start for them.
template <class System, bool records>
struct TapedStart {
  using R = Taped<records>;

  R parameters[System::kParameters], state[System::kStates], u[System::kInputs];
  int begin, end = 0;  // the nodes of `start`
  typename System::template Start<R> start;

  // z, w: the 2 n numbers at `pairs`.
  LCP_INLINE TapedStart(Tape<records>& tape, int n, const V* D, const V* p, const V* x, const V* input, const V* z,
                        const V* w, R* pairs)
      : begin(set(tape, n, p, x, input, z, w, pairs)), start(System::start(n, D, parameters, state, u)) {
    end = tape.size();
  }

 private:
  LCP_INLINE int set(Tape<records>& tape, int n, const V* p, const V* x, const V* input, const V* z, const V* w,
                     R* pairs) {
    const auto copy = [&tape](int count, const V* from, R* to) LCP_INLINE_LAMBDA {
      for (int i = 0; i < count; ++i) to[i] = R::independent(tape, from[i]);
    };
    copy(System::kParameters, p, parameters);
    copy(System::kStates, x, state);
    copy(System::kInputs, input, u);
    copy(n, z, pairs);
    copy(n, w, pairs + n);
    return tape.size();
  }
};

/// The Adjoint of a system whose formulas take Taped numbers, too. The tape keeps System::start; System::advance and
/// then System::pairs are recorded behind it and dropped again.
template <class System>
class TapedAdjoint {
  using R = Taped<true>;
  using Node = Tape<true>::Node;

 public:
  static std::size_t workspace(int n) { return (2 * n * sizeof(R) + length(n) * sizeof(Node)) / sizeof(double); }

  LCP_INLINE TapedAdjoint(int n, const V* parameters, const V* state, const V* u, const V* D, const V* z, const V* w,
                          bool is_smoothed, double* memory)
      : n_(n),
        is_smoothed_(is_smoothed),
        D_(D),
        pairs_(reinterpret_cast<R*>(memory)),
        tape_(pairs_ + 2 * n),
        taped_(tape_, n, D, parameters, state, u, z, w, pairs_) {}

  LCP_INLINE void advance(const V* l, V* of_z, V* of_w) {
    System::advance(n_, taped_.start, D_, pairs_, pairs_ + n_, is_smoothed_,
                    [&](int i, const R& number) LCP_INLINE_LAMBDA { tape_.add_adjoint(number.node, l[i]); });
    tape_.reverse(tape_.size(), taped_.end);
    for (int i = 0; i < n_; ++i) {
      of_z[i] += tape_.adjoint(pairs_[i].node);
      of_w[i] += tape_.adjoint(pairs_[n_ + i].node);
    }
    tape_.cut(taped_.end);
  }

  LCP_INLINE void pairs(const V* z, const V* t, V* of_parameters, V* of_state, V* of_u) {
    System::pairs(n_, taped_.start, D_, z,
                  [&](int i, const R& number) LCP_INLINE_LAMBDA { tape_.add_adjoint(number.node, t[i]); });
    tape_.reverse(tape_.size(), taped_.begin);
    const auto read = [this](int count, const R* numbers, V* to) LCP_INLINE_LAMBDA {
      for (int i = 0; i < count; ++i) to[i] = tape_.adjoint(numbers[i].node);
    };
    read(System::kParameters, taped_.parameters, of_parameters);
    read(System::kStates, taped_.state, of_state);
    read(System::kInputs, taped_.u, of_u);
  }

 private:
  // The most nodes that the tape has.
  static int length(int n) {
    const std::unique_ptr<V[]> numbers(new V[2 * n]);
    const std::unique_ptr<Taped<false>[]> pairs(new Taped<false>[2 * n]);
    for (int i = 0; i < 2 * n; ++i) numbers[i] = 1;
    V ones[System::kParameters + System::kStates + System::kInputs];
    for (V& one : ones) one = 1;
    Tape<false> tape(nullptr);
    const TapedStart<System, false> taped(tape, n, numbers.get(), ones, ones, ones, numbers.get(), numbers.get(),
                                          pairs.get());
    const auto nothing = [](int, const auto&) LCP_INLINE_LAMBDA {};
    System::advance(n, taped.start, numbers.get(), pairs.get(), pairs.get() + n, false, nothing);
    const int advanced = tape.size();
    tape.cut(taped.end);
    System::pairs(n, taped.start, numbers.get(), numbers.get(), nothing);
    return tape.size() > advanced ? tape.size() : advanced;
  }

  int n_;
  bool is_smoothed_;
  const V* D_;
  R* pairs_;  // z, then w
  Tape<true> tape_;
  TapedStart<System, true> taped_;
};

}  // namespace lcp::systems::LCP_ISA
