// Rollouts of any kind with a linear feedback, one step of the kind after another: what step t is given is
//   u_t + K_t e(x_ref_t, x_t).
// The error e is x_ref - x. Where the state has unit quaternions q, e has in their place twice the vector part of
// conj(q) q_ref, in whichever of both signs turns less: the rotation vector from q to q_ref, to third order.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "ops/derivative.h"
#include "ops/rollout/kind.h"
#include "ops/rollout/operators.h"

namespace lcp::ops {
namespace closed_loops {
namespace {

constexpr std::string_view kName = "closed_loop";

StepText base_of(const StepText& step) {
  const std::string_view text = step.text();
  return StepText(text.substr(text.find(' ') + 1));
}

// The results of one step, or what belongs to them, with a dimension of one step. An empty tensor has no memory at a
// later step.
List at_step(at::TensorList all, c10::ArrayRef<Argument> what, std::int64_t s) {
  List some;
  for (std::size_t k = 0; k < all.size(); ++k)
    some.push_back(all[k].narrow(-what[k].sizes.count, all[k].numel() == 0 ? 0 : s, 1));
  return some;
}

// The product conj(q) r as a function of q, [..., b, 4, 4]: (w, v) with w = q . r and v = q_w r_v - r_w q_v - q_v x
// r_v, which changes its sign with q and r exchanged.
Tensor rows_of_turn(const Tensor& r) {
  const auto part = r.unbind(-1);
  const Tensor &w = part[0], &x = part[1], &y = part[2], &z = part[3];
  return at::stack({w, x, y, z, x, -w, -z, y, y, z, -w, -x, z, -y, x, -w}, -1).unflatten(-1, {4, 4});
}

// The error of a state with k numbers, of which some may be quaternions.
class Error {
 public:
  Error(const Plant& plant, at::TensorList state) {
    for (std::size_t k = 0; k < state.size(); ++k) {
      const std::int64_t size = state[k].size(-1);
      if (plant.quaternions == k) begin_ = numbers_, bodies_ = size / 4;
      sizes_.push_back(size);
      numbers_ += size;
    }
  }

  std::int64_t size() const { return numbers_ - bodies_; }
  at::IntArrayRef sizes() const { return sizes_; }  ///< of the parts of the state

  // What operator() needs of references, [..., k].
  Tensor rows(const Tensor& reference) const { return bodies_ == 0 ? Tensor() : rows_of_turn(quaternions(reference)); }

  Tensor operator()(const Tensor& reference, const Tensor& rows, const Tensor& x) const {
    const Tensor difference = reference - x;
    if (bodies_ == 0) return difference;
    const Tensor turn = times(rows, quaternions(x)), twice = twice_sign(turn.select(-1, 0));
    const std::int64_t behind = begin_ + 4 * bodies_;
    return at::cat({difference.narrow(-1, 0, begin_), (twice.unsqueeze(-1) * turn.narrow(-1, 1, 3)).flatten(-2),
                    difference.narrow(-1, behind, numbers_ - behind)},
                   -1);
  }

  // K times the derivative of the error in `reference`, [..., m, k], or minus that in `x` with both exchanged.
  Tensor factors(const Tensor& K, const Tensor& reference, const Tensor& x) const {
    if (bodies_ == 0) return K;
    const Tensor twice = twice_sign((quaternions(reference) * quaternions(x)).sum(-1));
    const Tensor rows = -twice.unsqueeze(-1).unsqueeze(-1) * rows_of_turn(quaternions(x)).narrow(-2, 1, 3);
    const Tensor of_turns = K.narrow(-1, begin_, 3 * bodies_).unflatten(-1, {bodies_, 3});
    const Tensor by_numbers = (of_turns.unsqueeze(-1) * rows.unsqueeze(-4)).sum(-2).flatten(-2);
    const auto others = [&](std::int64_t begin, std::int64_t count) {
      at::DimVector shape(by_numbers.sizes().begin(), by_numbers.sizes().end() - 1);
      shape.push_back(count);
      return K.narrow(-1, begin, count).expand(shape);
    };
    const std::int64_t behind = begin_ + 3 * bodies_;
    return at::cat({others(0, begin_), by_numbers, others(behind, size() - behind)}, -1);
  }

 private:
  Tensor quaternions(const Tensor& x) const { return x.narrow(-1, begin_, 4 * bodies_).unflatten(-1, {bodies_, 4}); }
  static Tensor twice_sign(const Tensor& w) { return (w >= 0).to(w.scalar_type()).mul_(4).sub_(2); }

  std::vector<std::int64_t> sizes_;
  std::int64_t numbers_ = 0, begin_ = 0, bodies_ = 0;  // where the quaternions begin, and how many they are
};

// The inputs of a closed loop: those of its kind, of which the feedback stands behind the differentiable ones.
struct Inputs {
  List of_kind;
  Tensor K, reference;  // [..., T, m, d] and [..., T, k]
  Plant plant;
  Error error;
  Tensor rows;  // those of the reference

  Inputs(const RolloutKind& kind, at::TensorList x)
      : of_kind(without_feedback(kind, x)),
        K(x[kind.differentiable_inputs()]),
        reference(x[kind.differentiable_inputs() + 1]),
        plant(kind.plant()),
        error(plant, first()),
        rows(error.rows(reference)) {
    K = K.unflatten(-1, {u().size(-1), error.size()});
  }

  static List without_feedback(const RolloutKind& kind, at::TensorList x) {
    List all = x.vec();
    const auto feedback = all.begin() + static_cast<std::ptrdiff_t>(kind.differentiable_inputs());
    all.erase(feedback, feedback + 2);
    return all;
  }

  at::TensorList first() const { return at::TensorList(of_kind).slice(plant.first_state, plant.states); }
  const Tensor& u() const { return of_kind[plant.input]; }
  std::int64_t steps() const { return u().size(-2); }

  // Those of one step, from `state` with the input u, [..., m].
  List of_step(at::TensorList state, const Tensor& input) const {
    List all = of_kind;
    for (std::size_t k = 0; k < state.size(); ++k) all[plant.first_state + k] = state[k];
    all[plant.input] = input.unsqueeze(-2);
    return all;
  }
  // The input of step s from `state`.
  Tensor input(at::TensorList state, std::int64_t s) const {
    const Tensor of_step = rows.defined() ? rows.select(-4, s) : rows;
    return u().select(-2, s) + times(K.select(-3, s), error(reference.select(-2, s), of_step, joined(state)));
  }

  static Tensor joined(at::TensorList state) {
    if (state.size() == 1) return state.front();
    at::DimVector batch;
    for (const Tensor& x : state) batch = at::infer_size_dimvector(batch, x.sizes().slice(0, x.dim() - 1));
    List all;
    for (const Tensor& x : state) {
      at::DimVector shape = batch;
      shape.push_back(x.size(-1));
      all.push_back(x.expand(shape));
    }
    return at::cat(all, -1);
  }
};

// The state at the end of a step, given its results with a dimension of one step.
List end_of(const Plant& plant, at::TensorList results) {
  List state;
  for (std::size_t k = 0; k < plant.states; ++k) state.push_back(results[k].squeeze(-2));
  return state;
}

// A recorded trajectory: the states at the beginning of all steps, what these were given, and how it depends on the
// state and its reference. NaN, behind a step that was not solved, counts as 0: such a step has a gradient of its own.
struct Recorded {
  List states;                                  // each [batch..., T, size]
  Tensor error, input, by_state, by_reference;  // [..., T, d], [..., T, m] and [..., T, m, k] twice

  Recorded(const Inputs& all, at::TensorList path) {
    for (std::size_t k = 0; k < all.plant.states; ++k) {
      const Tensor& ends = path[k];
      at::DimVector shape(ends.sizes().begin(), ends.sizes().end());
      shape[shape.size() - 2] = 1;
      states.push_back(at::cat({all.first()[k].unsqueeze(-2).expand(shape), ends.narrow(-2, 0, all.steps() - 1)}, -2));
    }
    const Tensor x = Inputs::joined(states);
    const auto known = [](const Tensor& numbers) { return numbers.masked_fill(numbers.isnan(), 0); };
    error = all.error(all.reference, all.rows, x);
    input = all.u() + times(all.K, error);
    error = known(error);
    by_state = known(-all.error.factors(all.K, x, all.reference));
    by_reference = known(all.error.factors(all.K, all.reference, x));
  }

  List at(std::int64_t s) const {
    List all;
    for (const Tensor& each : states) all.push_back(each.select(-2, s));
    return all;
  }
};

Tensor transposed_times(const Tensor& A, const Tensor& x) { return (A * x.unsqueeze(-1)).sum(-2); }

std::vector<Argument> inputs_of(const RolloutKind& kind) {
  std::vector<Argument> all = kind.inputs().vec();
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(kind.differentiable_inputs()),
             {tensor("K", "T K"), tensor("x_ref", "T X")});
  return all;
}

class ClosedLoop final : public RolloutKind {
 public:
  explicit ClosedLoop(const RolloutKind& kind)
      : RolloutKind(kName, inputs_of(kind), kind.differentiable_inputs() + 2, kind.results().vec(),
                    kind.differentiable_results()),
        kind_(kind) {}

  Plant plant() const override { return kind_.plant(); }

  void check(const Call& call, const StepText& step) const override {
    kind_.check(call, base_of(step));
    const auto x = std::get<at::TensorList>(call.value("x"));
    const Plant plant = this->plant();
    const Error error(plant, x.slice(plant.first_state, plant.states));
    const std::int64_t inputs = x[plant.input].size(-1), numbers = c10::sum_integers(error.sizes());
    TORCH_CHECK(call.size('X') == numbers, "x_ref must have ", numbers, " numbers; got ", call.size('X'));
    TORCH_CHECK(call.size('K') == inputs * error.size(), "K must have ", inputs, " x ", error.size(), " numbers; got ",
                call.size('K'));
  }

  bool differentiates_by_tensors(const StepText& step) const override {
    return kind_.differentiates_by_tensors(base_of(step));
  }

  std::int64_t saved(const StepText& step, at::TensorList x) const override {
    return kind_.saved(base_of(step), Inputs::without_feedback(kind_, x));
  }

  void run(const StepText& step, at::TensorList x, std::int64_t saved, at::TensorList results) const override {
    const Inputs all(kind_, x);
    List state = all.first().vec();
    for (std::int64_t s = 0; s < all.steps(); ++s) {
      const List of_step = at_step(results, path(), s);
      kind_.run(base_of(step), all.of_step(state, all.input(state, s)), saved, of_step);
      state = end_of(all.plant, of_step);
    }
  }

  void adjoint(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList g, std::int64_t wanted,
               at::TensorList gradients) const override {
    const Inputs all(kind_, x);
    const std::size_t inputs = kind_.differentiable_inputs();
    const auto is_wanted = [&](std::size_t k) { return (wanted >> k & 1) != 0; };
    const auto is_state = [&](std::size_t k) { return k - all.plant.first_state < all.plant.states; };
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      if (is_wanted(k)) gradients[k].zero_();
    }
    if (all.steps() == 0 || gradients.front().numel() == 0) return;
    const Recorded recorded(all, path);
    std::int64_t of_step_wanted = wanted & ((std::int64_t{1} << inputs) - 1);
    List of_step, carried;
    for (std::size_t k = 0; k < inputs; ++k) {
      const bool is_input = k == all.plant.input;
      of_step.push_back(is_input ? at::empty_like(gradients[k].narrow(-2, 0, 1).movedim(-2, 0)).movedim(0, -2)
                                 : at::empty_like(gradients[k]));
      if (is_input || is_state(k)) of_step_wanted |= std::int64_t{1} << k;
      if (is_state(k)) carried.push_back(at::zeros_like(gradients[k]));
    }
    List of_inputs(all.steps());
    for (std::int64_t s = all.steps(); s-- > 0;) {
      List g_step = at_step(g, kind_.gradients(), s);
      for (std::size_t k = 0; k < carried.size(); ++k) g_step[k] = g_step[k] + carried[k].unsqueeze(-2);
      kind_.adjoint(base_of(step), all.of_step(recorded.at(s), recorded.input.select(-2, s)),
                    at_step(path, this->path(), s), g_step, of_step_wanted, of_step);
      const Tensor of_input = of_step[all.plant.input].squeeze(-2);
      of_inputs[s] = of_input.clone();
      const List by_feedback =
          transposed_times(recorded.by_state.select(-3, s), of_input).split_with_sizes(all.error.sizes(), -1);
      for (std::size_t k = 0; k < inputs; ++k) {
        if (is_state(k)) {
          const std::size_t i = k - all.plant.first_state;
          carried[i] = of_step[k] + by_feedback[i];
        } else if (k != all.plant.input && is_wanted(k)) {
          gradients[k].add_(of_step[k]);
        }
      }
    }
    for (std::size_t i = 0; i < carried.size(); ++i) {
      if (is_wanted(all.plant.first_state + i)) gradients[all.plant.first_state + i].copy_(carried[i]);
    }
    const Tensor of_input = at::stack(of_inputs, -2);
    if (is_wanted(all.plant.input)) gradients[all.plant.input].copy_(of_input);
    if (is_wanted(inputs)) gradients[inputs].copy_((of_input.unsqueeze(-1) * recorded.error.unsqueeze(-2)).flatten(-2));
    if (is_wanted(inputs + 1)) gradients[inputs + 1].copy_(transposed_times(recorded.by_reference, of_input));
  }

  void tangent(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList d,
               at::TensorList tangents) const override {
    const Inputs all(kind_, x);
    if (all.steps() == 0 || tangents.front().numel() == 0) return;
    const Recorded recorded(all, path);
    const std::size_t inputs = kind_.differentiable_inputs();
    const Tensor of_K = d[inputs].unflatten(-1, {all.u().size(-1), all.error.size()});
    const Tensor by_feedback =
        d[all.plant.input] + times(of_K, recorded.error) + times(recorded.by_reference, d[inputs + 1]);
    List change = d.slice(0, inputs).vec();
    List state = d.slice(all.plant.first_state, all.plant.states).vec();
    for (std::int64_t s = 0; s < all.steps(); ++s) {
      for (std::size_t k = 0; k < state.size(); ++k) change[all.plant.first_state + k] = state[k];
      change[all.plant.input] =
          (by_feedback.select(-2, s) + times(recorded.by_state.select(-3, s), Inputs::joined(state))).unsqueeze(-2);
      const List of_step = at_step(tangents, kind_.gradients(), s);
      kind_.tangent(base_of(step), all.of_step(recorded.at(s), recorded.input.select(-2, s)),
                    at_step(path, this->path(), s), change, of_step);
      state = end_of(all.plant, of_step);
    }
  }

 private:
  const RolloutKind& kind_;
};

List closed_loop_by_tensors(const StepText& step, const List& x) {
  const StepText base = base_of(step);
  const RolloutKind& kind = kind_of(base.text());
  const ByTensors roll_out = by_tensors(kind.name());
  const Inputs all(kind, x);
  List state = all.first().vec();
  std::vector<List> results(kind.differentiable_results());
  for (std::int64_t s = 0; s < all.steps(); ++s) {
    const List of_step = roll_out(base, all.of_step(state, all.input(state, s)));
    for (std::size_t k = 0; k < results.size(); ++k) results[k].push_back(of_step[k]);
    state = end_of(all.plant, of_step);
  }
  List whole;
  for (const List& steps : results) whole.push_back(at::cat(steps, -2));
  return whole;
}

const RegisterByTensors registered(kName, closed_loop_by_tensors);

}  // namespace
}  // namespace closed_loops

const RolloutKind* find_closed_loop(std::string_view step) {
  if (kind_in(step) != closed_loops::kName) return nullptr;
  const RolloutKind& kind = kind_of(closed_loops::base_of(StepText(step)).text());
  static std::mutex mutex;
  static std::map<const RolloutKind*, std::unique_ptr<closed_loops::ClosedLoop>> kinds;
  const std::lock_guard lock(mutex);
  auto& found = kinds[&kind];
  if (!found) found = std::make_unique<closed_loops::ClosedLoop>(kind);
  return found.get();
}

List roll_out(std::string_view step, at::TensorList x, at::TensorList feedback) {
  if (feedback.empty()) return rollout_op().call(step, x, 0);
  List all = x.vec();
  const auto behind = static_cast<std::ptrdiff_t>(kind_of(step).differentiable_inputs());
  all.insert(all.begin() + behind, feedback.begin(), feedback.end());
  return rollout_op().call(std::string(closed_loops::kName).append(" ").append(step), all, 0);
}

List feedback_of(const std::optional<Feedback<Tensor>>& feedback, const Tensor& x, const Tensor& u) {
  if (!feedback) return {};
  TORCH_CHECK(x.dim() >= 1 && u.dim() >= 2, "x must be [..., k] and u [..., T, m]; got ", x.sizes(), " and ",
              u.sizes());
  const auto of_steps = [&](const char* name, const Tensor& each, c10::SymIntArrayRef size) {
    return of_all_steps(name, each.to(x.scalar_type()), size, u.sym_size(-2), /*steps_first=*/false);
  };
  const c10::SymInt inputs = u.sym_size(-1), numbers = x.sym_size(-1);
  return {of_steps("K", feedback->K, {inputs, numbers}).flatten(-2),
          of_steps("reference", feedback->reference, {numbers})};
}

Tensor of_all_steps(const char* name, const Tensor& x, c10::SymIntArrayRef size, const c10::SymInt& steps,
                    bool steps_first) {
  const std::int64_t others = x.dim() - std::ssize(size), place = steps_first ? 0 : others - 1;
  const std::string sizes = c10::Join(", ", size),
                    before = steps_first ? c10::str(steps, ", ...") : c10::str("..., ", steps);
  TORCH_CHECK(others >= 0 && x.sym_sizes().slice(others) == size &&
                  (others == 0 || x.sym_size(place) == 1 || x.sym_size(place) == steps),
              name, " must be [", sizes, "] or [", before, sizes.empty() ? "" : ", ", sizes, "]; got ", x.sym_sizes());
  const Tensor all = others == 0 ? x.unsqueeze(0) : x;
  c10::SymDimVector shape(all.sym_sizes());
  shape[others == 0 ? 0 : place] = steps;
  return all.expand_symint(shape);
}

}  // namespace lcp::ops
