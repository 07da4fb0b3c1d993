// Problems whose bodies or contacts stand in another order.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace lcp::testing {

/// The function that puts the parts of a vector, of this length each, back from their new order into the first.
///   order: the former place of each part.
template <class Index>
std::function<Eigen::VectorXd(const Eigen::VectorXd&)> put_back(std::vector<Index> order, Eigen::Index each) {
  return [order = std::move(order), each](const Eigen::VectorXd& x) {
    Eigen::VectorXd first(x.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      first.segment(each * order[i], each) = x.segment(each * static_cast<Eigen::Index>(i), each);
    }
    return first;
  };
}

}  // namespace lcp::testing
