// Contacts with friction among the pairs of a linear complementarity system.
#pragma once

#include <vector>

namespace lcp::lcs {

/// cone[i] = j where pair i is a friction direction, with the force z_i and the velocity w_i - z_j, of the contact
/// whose friction cone is pair j, with the slip speed z_j and the unused friction w_j; -1 where pair i is none. Without
/// any contact it may be empty.
using Cone = std::vector<int>;

/// Whether pair i is a direction of a contact that sticks: it does not slip, and there is a friction force or could be
/// one. Its velocity is then exactly 0, and so is the derivative of that.
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
