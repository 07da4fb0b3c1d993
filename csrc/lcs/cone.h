// Contacts with friction among the pairs of a linear complementarity system.
#pragma once

#include <vector>

namespace lcp::lcs {

/// cone[i] = j marks pair i as a friction direction of the contact whose friction cone is pair j. Pair j has the slip
/// speed z_j and the unused friction w_j; the direction has the force z_i and the velocity w_i - z_j. cone[i] = -1
/// where pair i is no direction. Without any contact the vector may be empty.
using Cone = std::vector<int>;

/// Whether pair i is a direction of a contact that sticks: the contact does not slip, and there is a friction force or
/// could be one. The direction's velocity is then exactly 0, and so is the derivative of the velocity.
template <class T>
bool sticks(const Cone& cone, int i, const T* z, const T* w) {
  if (cone.empty() || cone[i] < 0) return false;
  const int j = cone[i];
  if (!(z[j] == 0)) return false;
  bool held = w[j] > 0;
  for (int other = 0; other < static_cast<int>(cone.size()); ++other) held = held || (cone[other] == j && z[other] > 0);
  return held;
}

}  // namespace lcp::lcs
