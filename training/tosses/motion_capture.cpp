#include "tosses/motion_capture.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "run/program.h"
#include "tosses/free_fall.h"
#include "tosses/tosses.h"

namespace lcp::training {
namespace {

using Eigen::Index;
using Eigen::Matrix3Xd;
using Eigen::Quaterniond;
using Eigen::Vector3d;

constexpr Index kFewestRows = 5;      // samples of a motion
constexpr double kMostUneven = 0.25;  // of the time between samples
constexpr double kOddLength = 0.1;    // so far from 1 is the length of a quaternion whose columns are others

[[noreturn]] void refuse(const std::filesystem::path& path, std::size_t row, const std::string& what) {
  throw UsageError(path.string() + ": row " + std::to_string(row + 1) + ": " + what);
}

// Samples per unit of time.
double rate_of(const std::vector<double>& time, const std::filesystem::path& path) {
  std::vector<double> steps;
  for (std::size_t k = 1; k < time.size(); ++k) {
    steps.push_back(time[k] - time[k - 1]);
    if (!(steps.back() > 0)) refuse(path, k, "the time does not increase; got " + short_number(time[k], 9));
  }
  const double usual = median_of(steps), mean = (time.back() - time.front()) / static_cast<double>(steps.size());
  for (std::size_t k = 1; k < time.size(); ++k) {
    const double missing = std::round(steps[k - 1] / usual) - 1;
    if (missing > 0) {
      refuse(path, k,
             short_number(missing) + " samples are missing before it: the time goes on by " +
                 short_number(steps[k - 1]) + " instead of " + short_number(usual));
    }
  }
  for (std::size_t k = 1; k < time.size(); ++k) {
    const double off = (time[k] - time[0]) / mean - static_cast<double>(k);
    if (std::abs(off) > kMostUneven) {
      refuse(path, k, "the samples are unevenly spaced: its time is " + short_number(off) + " steps off");
    }
  }
  return 1 / mean;
}

}  // namespace

Capture read_capture(const std::filesystem::path& path, const CaptureColumns& columns, double rate) {
  const std::vector<std::string> present = csv_columns(path);
  const auto has = [&](const std::string& name) {
    return std::find(present.begin(), present.end(), name) != present.end();
  };
  std::vector<std::string> needed = columns.position;
  needed.insert(needed.end(), columns.quaternion.begin(), columns.quaternion.end());
  // Velocities are read where a column is there, or where they have names of their own.
  const auto exist = [&](const std::vector<std::string>& names, const std::vector<std::string>& usual) {
    if (names.size() != 3 || (names == usual && std::none_of(names.begin(), names.end(), has))) return false;
    needed.insert(needed.end(), names.begin(), names.end());
    return true;
  };
  const bool moves = exist(columns.velocity, CaptureColumns().velocity);
  const bool turns = exist(columns.angular_velocity, CaptureColumns().angular_velocity);
  if (rate == 0) {
    if (!has(columns.time)) {
      throw UsageError(path.string() + ": has no column \"" + columns.time +
                       "\"; --time names the column of times, --rate replaces it");
    }
    needed.push_back(columns.time);
  }
  const Table table = read_csv(path, needed);
  const auto count = static_cast<Index>(table.rows());
  if (count < kFewestRows) {
    throw UsageError(path.string() + ": has " + std::to_string(count) + " samples; a toss has at least " +
                     std::to_string(kFewestRows));
  }
  const auto rows = [&](const std::vector<std::string>& names) {
    Eigen::MatrixXd x(names.size(), count);
    for (std::size_t i = 0; i < names.size(); ++i) {
      x.row(static_cast<Index>(i)) = Eigen::Map<const Eigen::RowVectorXd>(table[names[i]].data(), count);
    }
    return x;
  };
  Capture capture{path.stem().string(), rate, rows(columns.position), rows(columns.quaternion), {}, {}};
  if (rate == 0) capture.rate = rate_of(table[columns.time], path);
  if (moves) capture.velocity = rows(columns.velocity);
  if (turns) capture.angular_velocity = rows(columns.angular_velocity);
  for (Index k = 0; k < count; ++k) {
    const double size = capture.quaternion.col(k).norm();
    if (std::abs(size - 1) > kOddLength) {
      refuse(path, static_cast<std::size_t>(k), "the quaternion must have the length 1; got " + short_number(size));
    }
  }
  capture.quaternion.colwise().normalize();
  return capture;
}

Vector3d axis_of(const std::string& up) { return (up.size() > 1 ? -1 : 1) * Vector3d::Unit(up.back() - 'x'); }

double angular_unit(const Reading& reading) { return reading[kDegrees] ? std::numbers::pi / 180 : 1; }

std::vector<Quaterniond> orientations_of(const Capture& capture, const Reading& reading) {
  std::vector<Quaterniond> orientations;
  for (const auto& q : capture.quaternion.colwise()) {
    const Quaterniond read = reading[kScalarLast] ? Quaterniond(q[3], q[0], q[1], q[2])  //
                                                  : Quaterniond(q[0], q[1], q[2], q[3]);
    orientations.push_back(reading[kWorldToBody] ? read.conjugate() : read);
  }
  return orientations;
}

Matrix3Xd differences(const Matrix3Xd& x, double rate) {
  const Index last = x.cols() - 1;
  Matrix3Xd derivative(3, x.cols());
  derivative.middleCols(1, last - 1) = x.rightCols(last - 1) - x.leftCols(last - 1);
  derivative.col(0) = 4 * x.col(1) - 3 * x.col(0) - x.col(2);
  derivative.col(last) = 3 * x.col(last) - 4 * x.col(last - 1) + x.col(last - 2);
  return rate / 2 * derivative;
}

Matrix3Xd turning(const std::vector<Quaterniond>& orientation, double rate) {
  const auto last = static_cast<Index>(orientation.size()) - 1;
  Matrix3Xd omega(3, last + 1);
  for (Index k = 0; k <= last; ++k) {
    const Index before = std::max<Index>(k - 1, 0), after = std::min(k + 1, last);
    Quaterniond turn =
        orientation[static_cast<std::size_t>(before)].conjugate() * orientation[static_cast<std::size_t>(after)];
    if (turn.w() < 0) turn.coeffs() *= -1;  // the shorter way
    const Eigen::AngleAxisd angle(turn);
    omega.col(k) = rate / static_cast<double>(after - before) * angle.angle() * angle.axis();
  }
  return omega;
}

Matrix3Xd running_median(const Matrix3Xd& x) {
  Matrix3Xd result(3, x.cols());
  for (Index k = 0; k < x.cols(); ++k) {
    const Index half = std::min({Index{2}, k, x.cols() - 1 - k});
    for (Index i = 0; i < 3; ++i) {
      const auto near = x.row(i).segment(k - half, 2 * half + 1);
      result(i, k) = median_of({near.begin(), near.end()});
    }
  }
  return result;
}

Table converted(const Capture& capture, const Conventions& conventions) {
  const auto& [length, time, reading, center, up, ground] = conventions;
  const double rate = capture.rate / time;
  const std::vector<Quaterniond> orientation = orientations_of(capture, reading);
  const Quaterniond upward =
      up == "-z" ? Quaterniond(0, 1, 0, 0) : Quaterniond::FromTwoVectors(axis_of(up), Vector3d::UnitZ());
  const bool turns = capture.angular_velocity.cols() > 0, moves = capture.velocity.cols() > 0;
  Matrix3Xd omega =
      turns ? Matrix3Xd(angular_unit(reading) * capture.angular_velocity) : running_median(turning(orientation, rate));
  Matrix3Xd position = length * capture.position, velocity = length * capture.velocity;
  for (Index k = 0; k < position.cols(); ++k) {
    const Quaterniond& q = orientation[static_cast<std::size_t>(k)];
    if (turns && reading[kInWorld]) omega.col(k) = q.conjugate() * omega.col(k);
    position.col(k) += q * (length * center);
    if (moves) velocity.col(k) += q * omega.col(k).cross(length * center);
  }
  if (!moves) velocity = running_median(differences(position, rate));

  Table table{{std::begin(kTossColumns), std::end(kTossColumns)}, {}};
  table.columns.resize(table.names.size());
  for (Index k = 0; k < position.cols(); ++k) {
    const Vector3d p = upward * position.col(k), v = upward * velocity.col(k), w = omega.col(k);
    const Quaterniond q = upward * orientation[static_cast<std::size_t>(k)];
    table.add_row({p[0], p[1], p[2] - length * ground, q.w(), q.x(), q.y(), q.z(), v[0], v[1], v[2], w[0], w[1], w[2]});
  }
  return table;
}

}  // namespace lcp::training
