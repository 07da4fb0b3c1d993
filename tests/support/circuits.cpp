#include "support/circuits.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace lcp::testing {

#ifdef __SIZEOF_FLOAT128__
using Quadruple = __float128;
#else
using Quadruple = long double;  // of as many bits where a compiler lacks the other, as on aarch64
#endif

double violation(const MixedProblem& problem, const Eigen::VectorXd& v) {
  const int size = problem.size();
  Eigen::VectorXd rows = Eigen::VectorXd::Ones(size), columns = rows;
  const auto spread = [](const Eigen::VectorXd& largest) {
    return largest.maxCoeff() / (largest.array() > 0).select(largest, largest.maxCoeff()).minCoeff();
  };
  const Eigen::MatrixXd sizes = problem.H.cwiseAbs();
  const bool scales = spread(sizes.rowwise().maxCoeff()) > 64 || spread(sizes.colwise().maxCoeff().transpose()) > 64;
  for (int sweep = 0; scales && sweep < 8; ++sweep) {
    const auto scaled = [&] { return Eigen::MatrixXd(rows.asDiagonal() * sizes * columns.asDiagonal()); };
    const auto root = [](const auto& largest) {
      return (largest.array() > 0).select(largest.array().sqrt(), 1).matrix();
    };
    rows = rows.cwiseQuotient(root(Eigen::VectorXd(scaled().rowwise().maxCoeff())));
    columns = columns.cwiseQuotient(root(Eigen::VectorXd(scaled().colwise().maxCoeff().transpose())));
  }
  const double largest = rows.cwiseProduct(problem.h.cwiseAbs()).maxCoeff();
  double worst = 0;
  for (int i = 0; i < size; ++i) {
    if (!std::isfinite(v[i]) || (i >= problem.k && v[i] < 0)) return std::numeric_limits<double>::infinity();
    Quadruple sum = problem.h[i];
    double terms = std::abs(problem.h[i]);
    for (int j = 0; j < size; ++j) {
      sum += static_cast<Quadruple>(problem.H(i, j)) * v[j];
      terms += std::abs(problem.H(i, j) * v[j]);
    }
    const auto y = static_cast<double>(sum);
    const double error = i < problem.k || v[i] > 0 ? std::abs(y) : std::max(0.0, -y);
    const double scale = std::min(largest, std::max(1e-4 * largest, rows[i] * terms));
    if (error > 0) worst = std::max(worst, rows[i] * error / scale);
  }
  return worst;
}

// The current `through` leaves a and enters b.
void Circuit::flow(int a, int b, Place through) {
  if (a > 0) entries_.push_back({{Kind::kNode, a - 1}, through, 1});
  if (b > 0) entries_.push_back({{Kind::kNode, b - 1}, through, -1});
}

// v_a - v_b in a row.
void Circuit::difference(Place row, int a, int b) {
  if (a > 0) entries_.push_back({row, {Kind::kNode, a - 1}, 1});
  if (b > 0) entries_.push_back({row, {Kind::kNode, b - 1}, -1});
}

void Circuit::resistor(int a, int b, double resistance) { capacitor(a, b, dt_ / resistance, 0); }

void Circuit::capacitor(int a, int b, double capacitance, double voltage) {
  const double conductance = capacitance / dt_;
  for (const auto& [node, sign] : {std::pair{a, 1.0}, {b, -1.0}}) {
    if (node == 0) continue;
    const Place row = {Kind::kNode, node - 1};
    if (a > 0) entries_.push_back({row, {Kind::kNode, a - 1}, sign * conductance});
    if (b > 0) entries_.push_back({row, {Kind::kNode, b - 1}, -sign * conductance});
    constants_.push_back({row, -sign * conductance * voltage});
  }
}

void Circuit::inductor(int a, int b, double inductance, double before) {
  const Place i = current();
  flow(a, b, i);
  difference(i, a, b);
  entries_.push_back({i, i, -inductance / dt_});
  constants_.push_back({i, inductance / dt_ * before});
}

void Circuit::source(int a, int b, double voltage, double resistance) {
  const Place i = current();
  flow(a, b, i);
  difference(i, a, b);
  entries_.push_back({i, i, -resistance});
  constants_.push_back({i, -voltage});
}

void Circuit::switched(int a, int b, bool closed, double resistance) {
  if (closed) return source(a, b, 0, resistance);
  const Place i = current();
  flow(a, b, i);
  entries_.push_back({i, i, 1});
}

// z the current, w the voltage in reverse.
void Circuit::diode(int a, int b, double voltage, double resistance) {
  const Place i = pair();
  flow(a, b, i);
  difference(i, b, a);
  entries_.push_back({i, i, resistance});
  constants_.push_back({i, voltage});
}

// v_a - v_b = z+ - z-, both the rests of the sign s: 0 <= z+ perp 1 - s >= 0, 0 <= z- perp 1 + s >= 0.
void Circuit::relay(int a, int b, int output, double voltage) {
  const Place sign = current(), supply = current(), above = pair(), below = pair();
  difference(sign, a, b);
  entries_.push_back({sign, above, -1});
  entries_.push_back({sign, below, 1});
  entries_.push_back({above, sign, -1});
  entries_.push_back({below, sign, 1});
  constants_.push_back({above, 1});
  constants_.push_back({below, 1});
  flow(output, 0, supply);
  difference(supply, output, 0);
  entries_.push_back({supply, sign, -voltage});
}

int Circuit::position(Place place) const {
  const int before = place.kind == Kind::kNode ? 0 : (place.kind == Kind::kCurrent ? nodes_ : nodes_ + currents_);
  return before + place.index;
}

MixedProblem Circuit::step() const {
  const int k = nodes_ + currents_;
  MixedProblem problem{k, RowMatrix::Zero(k + pairs_, k + pairs_), Eigen::VectorXd::Zero(k + pairs_)};
  for (const Entry& entry : entries_) problem.H(position(entry.row), position(entry.column)) += entry.value;
  for (const Constant& constant : constants_) problem.h[position(constant.row)] += constant.value;
  return problem;
}

const char* name_of(CircuitFamily family) {
  switch (family) {
    case CircuitFamily::kBuck:
      return "buck converters";
    case CircuitFamily::kBoost:
      return "boost converters";
    case CircuitFamily::kBridge:
      return "bridges of diodes";
    case CircuitFamily::kLadder:
      return "ladders of diodes";
    case CircuitFamily::kSwitchedCapacitor:
      return "switched capacitors";
    case CircuitFamily::kRelays:
      return "relays";
  }
  return "";
}

namespace {

class Values {
 public:
  Values(std::mt19937_64& random, double decades, double change = 0)
      : random_(random), decades_(decades), change_(change) {}
  double around(double x) {
    const double factor = std::exp(change_ * std::normal_distribution<double>()(changes_));
    return factor * x * std::pow(10, uniform(-decades_ / 2, decades_ / 2));
  }
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }
  bool toss() { return std::bernoulli_distribution()(random_); }
  int integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  double resistance() { return around(100); }
  double capacitance() { return around(1e-6); }
  double inductance() { return around(1e-4); }
  /// Of what is ideal half of the time.
  double loss() { return toss() ? 0.0 : around(1e-2); }
  double drop() { return toss() ? 0.0 : 0.7; }
  double volts() { return uniform(-20, 20); }
  double amperes() { return uniform(-2, 2); }

 private:
  std::mt19937_64& random_;
  double decades_, change_;
  std::mt19937_64 changes_{99};
};

// A switch from the input to each phase's node, a diode from the ground to it, an inductor from there to the output.
void buck(Circuit& circuit, Values& random, int pairs) {
  const int input = circuit.node(), output = circuit.node();
  circuit.source(input, 0, random.uniform(1, 40), random.loss());
  for (int phase = 0; phase < std::max(1, pairs / 2); ++phase) {
    const int node = circuit.node();
    circuit.switched(input, node, random.toss(), random.loss());
    circuit.diode(0, node, random.drop(), random.loss());
    if (pairs > 1) circuit.diode(node, input, random.drop(), random.loss());  // that of the transistor's body
    circuit.inductor(node, output, random.inductance(), random.amperes());
  }
  circuit.capacitor(output, 0, random.capacitance(), random.volts());
  circuit.resistor(output, 0, random.resistance());
}

void boost(Circuit& circuit, Values& random, int pairs) {
  const int input = circuit.node(), output = circuit.node();
  circuit.source(input, 0, random.uniform(1, 40), random.loss());
  for (int phase = 0; phase < std::max(1, pairs / 2); ++phase) {
    const int node = circuit.node();
    circuit.inductor(input, node, random.inductance(), random.amperes());
    circuit.switched(node, 0, random.toss(), random.loss());
    circuit.diode(node, output, random.drop(), random.loss());
    if (pairs > 1) circuit.diode(0, node, random.drop(), random.loss());
  }
  circuit.capacitor(output, 0, random.capacitance(), random.volts());
  circuit.resistor(output, 0, random.resistance());
}

// Bridges in series on their outputs, each with its own source behind an inductor.
void bridge(Circuit& circuit, Values& random, int pairs) {
  int below = 0;
  for (int stage = 0; stage < std::max(1, pairs / 4); ++stage) {
    const int left = circuit.node(), right = circuit.node(), source = circuit.node(), above = circuit.node();
    circuit.source(source, right, random.volts(), random.loss());
    circuit.inductor(source, left, random.inductance(), random.amperes());
    for (const int side : {left, right}) {
      circuit.diode(side, above, random.drop(), random.loss());
      circuit.diode(below, side, random.drop(), random.loss());
    }
    if (random.toss()) circuit.capacitor(above, below, random.capacitance(), random.volts());
    circuit.resistor(above, below, random.resistance());
    below = above;
  }
}

// The multiplier of Cockcroft and Walton.
void ladder(Circuit& circuit, Values& random, int pairs) {
  const int source = circuit.node();
  circuit.source(source, 0, random.volts(), random.loss());
  int before = 0, last = source;
  for (int stage = 0; stage < pairs; ++stage) {
    const int node = circuit.node();
    circuit.capacitor(last, node, random.capacitance(), random.volts());
    circuit.diode(before, node, random.drop(), random.loss());
    last = before;
    before = node;
  }
  circuit.resistor(before, 0, random.resistance());
}

// A charge pump: capacitors that switches take from the ground to the input, diodes or switches between them.
void switched_capacitor(Circuit& circuit, Values& random, int pairs) {
  const int input = circuit.node();
  circuit.source(input, 0, random.uniform(1, 10), random.loss());
  int before = input;
  for (int stage = 0; stage < pairs; ++stage) {
    const int node = circuit.node(), foot = circuit.node();
    circuit.diode(before, node, random.drop(), random.loss());
    circuit.capacitor(node, foot, random.capacitance(), random.volts());
    const bool up = random.toss();
    circuit.switched(foot, input, up, random.around(1e-1));
    circuit.switched(foot, 0, !up, random.around(1e-1));
    before = node;
  }
  circuit.resistor(before, 0, random.resistance());
}

// Each relay compares two nodes of a chain of integrators, or a node with the ground, and drives the next one.
void relays(Circuit& circuit, Values& random, int pairs) {
  std::vector<int> nodes;
  for (int stage = 0; stage < std::max(1, pairs / 2); ++stage) {
    const int node = circuit.node(), output = circuit.node();
    nodes.push_back(node);
    circuit.capacitor(node, 0, random.capacitance(), random.volts());
    circuit.resistor(node, 0, random.resistance());
    const int one = nodes[random.integer(0, stage)],
              other = stage == 0 || random.toss() ? 0 : nodes[random.integer(0, stage)];
    const bool positive = random.toss();
    if (one == other) {
      circuit.relay(positive ? one : 0, positive ? 0 : one, output, random.uniform(1, 15));
    } else {
      circuit.relay(positive ? one : other, positive ? other : one, output, random.uniform(1, 15));
    }
    circuit.resistor(output, node, random.resistance());
    if (stage > 0) circuit.resistor(output, nodes[stage - 1], random.resistance());
  }
}

// Chooses h for a random solution.
void plant(Values& values, const std::function<double()>& normal, MixedProblem& problem) {
  Eigen::VectorXd v = Eigen::VectorXd::NullaryExpr(problem.size(), normal);
  Eigen::VectorXd y = Eigen::VectorXd::Zero(problem.size());
  for (int j = problem.k; j < problem.size(); ++j) {
    v[j] = std::abs(v[j]);
    if (values.toss()) std::swap(v[j], y[j]);
  }
  problem.h = y - problem.H * v;
}

}  // namespace

MixedProblem circuit(std::mt19937_64& random, CircuitFamily family, int pairs, double decades, double change) {
  Values values(random, decades, change);
  Circuit circuit(std::pow(10, values.uniform(-9, -3)));
  switch (family) {
    case CircuitFamily::kBuck:
      buck(circuit, values, pairs);
      break;
    case CircuitFamily::kBoost:
      boost(circuit, values, pairs);
      break;
    case CircuitFamily::kBridge:
      bridge(circuit, values, pairs);
      break;
    case CircuitFamily::kLadder:
      ladder(circuit, values, pairs);
      break;
    case CircuitFamily::kSwitchedCapacitor:
      switched_capacitor(circuit, values, pairs);
      break;
    case CircuitFamily::kRelays:
      relays(circuit, values, pairs);
      break;
  }
  return circuit.step();
}

MixedProblem planted(std::mt19937_64& random, int k, int n, int singular) {
  Values values(random, 4);
  std::normal_distribution<double> normal;
  const double zeros = values.uniform(0, 0.5);
  const auto entry = [&] { return values.uniform(0, 1) < zeros ? 0.0 : normal(random); };
  MixedProblem problem{k, RowMatrix::NullaryExpr(k + n, k + n, entry), Eigen::VectorXd::Zero(k + n)};
  const bool zero = values.toss();
  for (int i = 0; i < singular; ++i) {
    problem.H.row(i).head(k) *= zero ? 0 : problem.H(i, k - 1);
    problem.H.col(i).head(k) *= 0;
  }
  plant(
      values, [&] { return normal(random); }, problem);
  return problem;
}

MixedProblem mechanism(std::mt19937_64& random, int pairs, double independence) {
  Values values(random, 4);
  std::normal_distribution<double> normal;
  const int n = 6 * values.integer(1, 3);
  const int joints = values.integer(2, n / 2);
  const auto matrix = [&](int rows, int columns) {
    return Eigen::MatrixXd(Eigen::MatrixXd::NullaryExpr(rows, columns, [&] { return normal(random); }));
  };
  const int repeated = values.integer(1, joints - 1);
  Eigen::MatrixXd J = matrix(joints, n);
  J.bottomRows(repeated) = matrix(repeated, joints - repeated) * J.topRows(joints - repeated);
  if (independence > 0) J.bottomRows(repeated) += independence * matrix(repeated, n);
  const Eigen::MatrixXd N = matrix(pairs, n);
  const int k = n + joints;
  MixedProblem problem{k, RowMatrix::Zero(k + pairs, k + pairs), Eigen::VectorXd::Zero(k + pairs)};
  for (int i = 0; i < n; ++i) problem.H(i, i) = values.around(1);
  problem.H.block(0, n, n, joints) = -J.transpose();
  problem.H.block(n, 0, joints, n) = J;
  problem.H.topRightCorner(n, pairs) = -N.transpose();
  problem.H.bottomLeftCorner(pairs, n) = N;
  plant(
      values, [&] { return normal(random); }, problem);
  return problem;
}

}  // namespace lcp::testing
