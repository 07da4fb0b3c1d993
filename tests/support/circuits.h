// Mixed LCPs as circuits and mechanisms pose them, to test and to time.
//
//   [HRB]  Ho, Ruehli, Brennan: The modified nodal approach to network analysis, IEEE Trans. Circuits Syst. 22, 1975.
//   [ABB]  Acary, Bonnefon, Brogliato: Nonsmooth Modeling and Simulation for Switched Circuits, Springer, 2011.
#pragma once

#include <Eigen/Core>
#include <random>
#include <vector>

#include "support/problems.h"

namespace lcp::testing {

/// 0 = A x + B z + p, w = C x + M z + q for H = [A B; C M] and h = (p, q).
struct MixedProblem {
  int k;  ///< equations
  RowMatrix H;
  Eigen::VectorXd h;

  int size() const { return static_cast<int>(h.size()); }
};

/// The largest error of a row for v = (x, z), with the rows and columns of H brought to like size where their largest
/// entries differ by more than a factor of 64, and added without rounding errors: |y_i| for y = H v + h where the row
/// is an equation or v_i > 0, else |min(0, y_i)|; relative to |h|, and in rows with smaller terms to these, as far as
/// 1e-4 |h|. Infinity where a z is negative.
double violation(const MixedProblem& problem, const Eigen::VectorXd& v);

/// One step of the implicit Euler method of a network, put together element by element, by modified nodal analysis
/// [HRB] with ideal diodes and relays [ABB]. Node 0 is the ground; SI units.
class Circuit {
 public:
  explicit Circuit(double dt) : dt_(dt) {}

  int node() { return ++nodes_; }  ///< a new one
  void resistor(int a, int b, double resistance);
  void capacitor(int a, int b, double capacitance, double voltage);     ///< that of a above b before the step
  void inductor(int a, int b, double inductance, double current);       ///< that from a to b before the step
  void source(int a, int b, double voltage, double resistance = 0);     ///< of a above b
  void switched(int a, int b, bool closed, double resistance = 0);      ///< an ideal switch
  void diode(int a, int b, double voltage = 0, double resistance = 0);  ///< conducts from a to b, above `voltage`
  void relay(int a, int b, int output, double voltage);  ///< the output is at +-voltage, by the sign of a above b

  MixedProblem step() const;

 private:
  enum class Kind { kNode, kCurrent, kPair };
  struct Place {
    Kind kind;
    int index;
  };
  struct Entry {
    Place row, column;
    double value;
  };
  struct Constant {
    Place row;
    double value;
  };
  Place current() { return {Kind::kCurrent, currents_++}; }
  Place pair() { return {Kind::kPair, pairs_++}; }
  void flow(int a, int b, Place through);
  void difference(Place row, int a, int b);
  int position(Place place) const;

  double dt_;
  int nodes_ = 0, currents_ = 0, pairs_ = 0;
  std::vector<Entry> entries_;
  std::vector<Constant> constants_;
};

/// The families of circuits: `pairs` is a bound from above; values are log-uniform over `decades` decades, the states
/// before the step, time steps of 1e-9 to 1e-3 s, and the switches random. All have a solution: they are passive, and
/// the output of relays is bounded. change: each component's value is multiplied by exp(change a), a normal number.
enum class CircuitFamily { kBuck, kBoost, kBridge, kLadder, kSwitchedCapacitor, kRelays };
inline constexpr CircuitFamily kCircuitFamilies[] = {CircuitFamily::kBuck,
                                                     CircuitFamily::kBoost,
                                                     CircuitFamily::kBridge,
                                                     CircuitFamily::kLadder,
                                                     CircuitFamily::kSwitchedCapacitor,
                                                     CircuitFamily::kRelays};
const char* name_of(CircuitFamily family);
MixedProblem circuit(std::mt19937_64& random, CircuitFamily family, int pairs, double decades, double change = 0);

/// The impact of a body, or of several, on supports: velocities and the impulses of joints are unknowns of equations,
/// 0 = m (v - v_free) - J' lambda - N' z, 0 = J v + c, w = N v + b >= 0, made of a solution. Rows of J depend on each
/// other up to `independence`, 0 to 1; masses differ by up to 1e4.
MixedProblem mechanism(std::mt19937_64& random, int pairs, double independence);

/// Normal entries, some of them 0, of A `singular` rows and columns, or their combinations; made of a solution. Mostly
/// not monotone.
MixedProblem planted(std::mt19937_64& random, int k, int n, int singular);

}  // namespace lcp::testing
