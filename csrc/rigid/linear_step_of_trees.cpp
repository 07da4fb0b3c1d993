// The derivative of a step of trees in closed form: what LinearStep does where it uses its trees_.
#include <algorithm>
#include <numeric>

#include "rigid/linear_step.h"

namespace lcp::rigid {
namespace {

Vector<Variable> constant(const Vector<double>& x) { return {x[0], x[1], x[2]}; }

}  // namespace

void LinearStep::set_jacobian(TreeDerivative::Jacobian& to) {
  const int dofs = scene_.dofs_of_trees(), actuators = static_cast<int>(scene_.actuators.size());
  Problem& problem = problems_.front();
  linearize(problem);
  const int contacts = static_cast<int>(problem.mu.size());
  const Data& data = problem.data;
  const auto count = static_cast<Eigen::Index>(data.s.size());
  of_p_and_s_.setZero(dofs + count, 2 * dofs + actuators);
  of_p_and_s_.topLeftCorner(dofs, 2 * dofs) = data.by_trees;
  const auto for_each_control = [&](const auto& use) {
    for (const Leaf& leaf : leaves_) {
      if (leaf.input == kForces) use(leaf.node, leaf.index - 6 * scene_.bodies);
    }
  };
  // The forces of a joint depend on its own motion and controls alone, so that one sweep has them all.
  tape_.begin_sweep();
  for (const Variable& number : data.p) tape_.add(number.node, number.node == 0 ? 0 : 1);
  tape_.reverse(problem.solved, 1);
  for (int k = 0; k < dofs; ++k) {
    of_p_and_s_(k, k) += tape_.derivative(displacements_[k].node);
    of_p_and_s_(k, dofs + k) += tape_.derivative(problem.from[k].node);
  }
  for_each_control([&](int node, int actuator) {
    const int joint = scene_.actuators[actuator].joint;
    of_p_and_s_(scene_.joints[joint].dof, 2 * dofs + actuator) += tape_.derivative(node);
  });
  // The rows of s and of the impulses on bodies, in several displacements a sweep.
  std::vector<int> nodes;
  for (const Variable& number : data.s) nodes.push_back(number.node);
  for (const TouchedBody& touched : data.touched) {
    for (const Vector<Variable>* const part : {&touched.impulse.force, &touched.impulse.torque}) {
      for (const Variable& number : part->entry) nodes.push_back(number.node);
    }
  }
  of_rows_.resize(static_cast<Eigen::Index>(nodes.size()), dofs);
  tape_.begin_sweep_of_many();
  for (int first = 0; first < dofs && !nodes.empty(); first += Tape::kMany) {
    const int many = std::min(Tape::kMany, dofs - first);
    const auto set_directions = [&](double length) {
      for (int i = 0; i < many; ++i) tape_.derivatives(displacements_[first + i].node)[i] = length;
    };
    set_directions(1);
    tape_.forward_many(displaced_, problem.solved);
    for (std::size_t row = 0; row < nodes.size(); ++row) {
      std::copy_n(tape_.derivatives(nodes[row]), many, &of_rows_(static_cast<Eigen::Index>(row), first));
    }
    set_directions(0);
  }
  of_p_and_s_.bottomLeftCorner(count, dofs) = of_rows_.topRows(count);
  Eigen::Index row = count;
  for (const TouchedBody& touched : data.touched) {
    trees_.for_each_carrier(touched.body, [&](int k) {
      const SpatialMotion& screw = trees_.screw(k);
      for (Eigen::Index i = 0; i < 3; ++i) {
        of_p_and_s_.row(k).head(dofs) +=
            screw.linear[i] * of_rows_.row(row + i) + screw.angular[i] * of_rows_.row(row + 3 + i);
      }
    });
    row += 6;
  }
  // The row of a servo depends on its own control alone, so that one sweep has them all, too.
  const bool has_servos = !problem.servos.empty();
  if (has_servos) {
    tape_.begin_sweep();
    for_each_control([&](int node, int) { tape_.add(node, 1); });
    tape_.forward(1, problem.solved);
    for (std::size_t r = 0; r < problem.lower.size(); ++r) {
      const int servo = scene_.pairs[problem.chosen[contacts + r]].servo;
      if (servo == Pair::kNone) continue;
      const std::size_t of_row = 3 * contacts + r;
      of_p_and_s_(dofs + static_cast<Eigen::Index>(of_row), 2 * dofs + servo) = tape_.derivative(data.s[of_row].node);
    }
  }
  v_by_p_.resize(dofs, dofs);
  v_by_s_.resize(dofs, count);
  derivative_->jacobian(contacts, posed_, at_, is_same_, v_by_p_, v_by_s_);
  to.noalias() = v_by_p_ * of_p_and_s_.topRows(dofs);
  to.leftCols(dofs).noalias() += v_by_s_ * of_p_and_s_.bottomLeftCorner(count, dofs);
  if (has_servos) to.rightCols(actuators).noalias() += v_by_s_ * of_p_and_s_.bottomRightCorner(count, actuators);
}

// p of the trees: what joints add, the impulses of contacts, and the derivative of the rest.
void LinearStep::add_trees(const Problem& problem, const SolvedContacts& at, const double* u, Data& data) {
  const int first = scene_.first_of_trees();
  data.touched.clear();
  for (const Link& link : scene_.links) {
    if (!is_turned_[link.body]) continue;
    const Wrench<Variable>& wrench = work_.wrenches[link.body];
    set_place(link.body);
    const Vector<Variable> arm = places_.positions[link.body] - constant(trees_.origin(link.body));
    data.touched.push_back({link.body, {wrench.force, wrench.torque + cross(arm, wrench.force)}});
  }
  add_joint_forces(scene_, joints_, true, problem.from.data() + first, at_point_.data() + first, data.p.data() + first);
  std::transform(problem.from.begin() + first, problem.from.end(), from_.begin() + first,
                 [](const Variable& number) { return number.value; });
  trees_.differentiate(parameters_, u, from_.data() + first, at.v + first, work_.wrenches, data.by_trees);
}

// The displacements of the degrees of freedom of the trees, as the state has them.
void LinearStep::set_displacements() {
  trees_.set_places(simulator_.places());
  std::vector<int> dofs(displacements_.size());
  std::iota(dofs.begin(), dofs.end(), 0);
  for_each_coordinate(
      scene_, dofs.data(), [&](StatePart part, int i, int dof) { displacements_[dof] = state_[part][i]; },
      [&](int i, const Vector<int>& turn) {
        const Quaternion<Variable> q = quaternion_at(state_[kOrientation].data(), i);
        const Quaternion<double> at = {q.w.value, q.x.value, q.y.value, q.z.value};
        const double scale = 2 / (at.w * at.w + at.x * at.x + at.y * at.y + at.z * at.z);
        const Quaternion<Variable> change = product<Variable>({at.w, -at.x, -at.y, -at.z}, q);
        displacements_[turn[0]] = scale * change.x;
        displacements_[turn[1]] = scale * change.y;
        displacements_[turn[2]] = scale * change.z;
      });
  displaced_ = tape_.size();
}

// Adds the changes that the displacements of the trees make in a motion of a body, rate(k) for degree of freedom k.
template <class Rate>
void LinearStep::add_displacements(int body, const Rate& rate, Vector<Variable>& angular, Vector<Variable>& linear) {
  const auto add = [](const Variable& displacement, double by, Variable& to) {
    if (by != 0) to = function(to, displacement, to.value, 1, by);
  };
  trees_.for_each_carrier(body, [&](int k) {
    const SpatialMotion change = rate(k);
    for (std::size_t i = 0; i < 3; ++i) {
      add(displacements_[k], change.angular[i], angular[i]);
      add(displacements_[k], change.linear[i], linear[i]);
    }
  });
}

// The place of a body, where it is not known yet.
void LinearStep::set_place(int body) {
  if (has_rotation_[body]) return;
  has_rotation_[body] = true;
  Matrix<Variable>& rotation = places_.rotations[body];
  if (body < scene_.free()) {
    rotation = rotation_matrix(quaternion_at(state_[kOrientation].data(), body));
    return;
  }
  const Places<double>& places = simulator_.places();
  const Vector<double> arm = places.position(body) - trees_.origin(body);
  Vector<Variable> turn = {0, 0, 0};
  places_.positions[body] = constant(places.position(body));
  add_displacements(
      body,
      [&](int k) {
        const SpatialMotion& screw = trees_.screw(k);
        return SpatialMotion{screw.angular, screw.linear + cross(screw.angular, arm)};
      },
      turn, places_.positions[body]);
  for (std::size_t j = 0; j < 3; ++j) {
    const Vector<Variable> axis = constant(column(places.rotation(body), j)), turned = axis + cross(turn, axis);
    for (std::size_t i = 0; i < 3; ++i) rotation[i][j] = turned[i];
  }
}

// The motion of a body of the trees at the velocities of trees_.
void LinearStep::set_motion(int body, Motion<Variable>& to) {
  set_place(body);
  const SpatialMotion& velocity = trees_.velocity(body);
  to.turning = constant(velocity.angular);
  Vector<Variable> at_origin = constant(velocity.linear);
  add_displacements(
      body, [&](int k) { return trees_.turned_velocity(body, k); }, to.turning, at_origin);
  to.velocity = at_origin + cross(to.turning, places_.positions[body] - constant(trees_.origin(body)));
}

}  // namespace lcp::rigid
