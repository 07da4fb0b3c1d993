#include "tosses/capture_checks.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <set>
#include <utility>

#include "run/text.h"
#include "tosses/free_fall.h"

namespace lcp::training {
namespace {

using Eigen::Index;
using Eigen::Matrix3Xd;
using Eigen::Quaterniond;
using Eigen::Vector3d;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kDegree = std::numbers::pi / 180;
// Of gravity, relative: what is wrong, not only inexact; motion that is published is 3 % off.
constexpr double kGravityOff = 0.1;
// Degrees between gravity and an axis, or a face: what is wrong, and what is odd.
constexpr double kTilted = 10, kAskew = 2;
// Residuals of velocities, relative: of two readings that differ, and of what has nothing to do with the motion.
constexpr double kOff = 0.1, kFarOff = 0.5;
// Between the gravity of one file and that of all, relative: what is odd, and what is wrong.
constexpr double kOddFile = 0.3, kWrongFile = 1.2;
// Of what flights tell of the centre in the best direction: nothing.
constexpr double kHardly = 1e-3;
// Of cameras, samples per second.
constexpr double kUsualRates[] = {25, 30, 50, 60, 100, 120, 150, 200, 240, 250, 300, 360, 500, 1000};
constexpr std::size_t kReadings = 1 << kReadingBits, kReadingsOfQuaternions = 4;

double angle_between(const Vector3d& a, const Vector3d& b) { return std::atan2(a.cross(b).norm(), a.dot(b)) / kDegree; }

// The median length of those columns of x that belong to fast columns of `motion`: rest tells nothing.
double median_length(const Matrix3Xd& x, const Matrix3Xd& motion) {
  std::vector<double> speeds(static_cast<std::size_t>(x.cols())), lengths;
  for (Index k = 0; k < x.cols(); ++k) speeds[static_cast<std::size_t>(k)] = motion.col(k).norm();
  std::vector<double> sorted = speeds;
  std::sort(sorted.begin(), sorted.end());
  const double slow = sorted[9 * (sorted.size() - 1) / 10] / 5;
  for (Index k = 0; k < x.cols(); ++k) {
    if (speeds[static_cast<std::size_t>(k)] >= slow) lengths.push_back(x.col(k).norm());
  }
  return median_of(lengths);
}

// The derivative of the quaternions in the axes of the reading, rad/s.
Matrix3Xd derivative(const Capture& capture, const Reading& reading, double rate) {
  const std::vector<Quaterniond> orientation = orientations_of(capture, reading);
  Matrix3Xd omega = turning(orientation, rate);
  for (Index k = 0; reading[kInWorld] && k < omega.cols(); ++k) {
    omega.col(k) = orientation[static_cast<std::size_t>(k)] * omega.col(k);
  }
  return omega;
}

// The flags that make one reading of another.
std::string flags_of(const Reading& now, const Reading& then) {
  std::string text;
  for (std::size_t bit = 0; bit < kReadingBits; ++bit) {
    if (now[bit] == then[bit]) continue;
    text += std::string(text.empty() ? "--" : " --") + kReadingFlags[bit].name + " " +
            kReadingFlags[bit].values[then[bit] ? 1 : 0];
  }
  return text;
}

double median_of_known(std::vector<double> x) {
  std::erase_if(x, [](double value) { return std::isnan(value); });
  return x.empty() ? kNone : median_of(x);
}

std::string text_of(const Vector3d& x) {
  return short_number(x[0]) + " " + short_number(x[1]) + " " + short_number(x[2]);
}

class Checker {
 public:
  Checker(const std::vector<Capture>& captures, const std::vector<Table>& tosses, const Conventions& conventions,
          double gravity, bool timed)
      : captures_(captures), tosses_(tosses), conventions_(conventions), gravity_(gravity), timed_(timed) {}

  CaptureChecks run() {
    find_falls();
    check_gravity();
    check_turning();
    check_velocities();
    check_ground();
    check_each_file();
    found_.metrics["files"] = captures_.size();
    found_.metrics["rate"] = rate_of(captures_.front());
    found_.metrics["contradictions"] = found_.contradictions;
    found_.metrics["notes"] = found_.notes;
    return std::move(found_);
  }

 private:
  double rate_of(const Capture& capture) const { return capture.rate / conventions_.time; }

  void contradict(const std::string& text) { found_.contradictions.push_back(text); }

  std::vector<double> of_files(const std::function<double(std::size_t)>& value) const {
    std::vector<double> values(captures_.size());
    for (std::size_t n = 0; n < values.size(); ++n) values[n] = value(n);
    return values;
  }

  // Adds a column to the table of files; returns its median over the files that have a value.
  double column(const char* name, const std::function<double(std::size_t)>& value) {
    found_.files.add(name, of_files(value));
    return median_of_known(found_.files[name]);
  }

  // Flights need orientations only for the centre: those of the reading that fits best, but for a factor.
  FreeFall fall_of(const Capture& capture, bool with_center) const {
    const double rate = rate_of(capture);
    const Matrix3Xd& given = capture.angular_velocity;
    Reading best = conventions_.reading;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; given.cols() > 0 && k < kReadings / 2; ++k) {
      const Matrix3Xd omega = derivative(capture, k, rate);
      const double factor = median_length(omega, omega) / median_length(given, given);
      const double off = median_length(factor * given - omega, omega);
      if (off < least) {
        least = off;
        best = k;
      }
    }
    const std::vector<Quaterniond> orientation = orientations_of(capture, best);
    Matrix3Xd position = conventions_.length * capture.position;
    for (Index k = 0; k < position.cols(); ++k) {
      position.col(k) += orientation[static_cast<std::size_t>(k)] * (conventions_.length * conventions_.center);
    }
    const FreeFall none{-1, 0, Vector3d::Constant(kNone), kNone, kNone, Vector3d::Zero(), Eigen::Matrix3d::Zero()};
    return find_free_fall(position, orientation, 1 / rate, with_center).value_or(none);
  }

  void find_falls() {
    // All files have one tracked point: either most of them show that it is not the centre, or it is.
    for (const Capture& capture : captures_) falls_.push_back(fall_of(capture, true));
    const auto elsewhere = [](const FreeFall& fall) { return !fall.center.isZero(); };
    if (2 * std::count_if(falls_.begin(), falls_.end(), elsewhere) <= std::ssize(falls_)) {
      for (std::size_t n = 0; n < falls_.size(); ++n) {
        if (elsewhere(falls_[n])) falls_[n] = fall_of(captures_[n], false);
      }
    }
    column("toss", [](std::size_t n) { return static_cast<double>(n); });
    column("samples", [&](std::size_t n) { return static_cast<double>(captures_[n].position.cols()); });
    column("flight_first", [&](std::size_t n) { return static_cast<double>(falls_[n].first); });
    column("flight_samples", [&](std::size_t n) { return static_cast<double>(falls_[n].count); });
    for (int i = 0; i < 3; ++i) {
      const char* const names[] = {"acceleration_x", "acceleration_y", "acceleration_z"};
      fall_[i] = column(names[i], [&](std::size_t n) { return falls_[n].acceleration[i]; });
    }
  }

  void check_gravity() {
    const double size = fall_.norm();
    const auto flights =
        std::count_if(falls_.begin(), falls_.end(), [](const FreeFall& fall) { return fall.count > 0; });
    column("gravity", [&](std::size_t n) { return falls_[n].acceleration.norm(); });
    double error = column("gravity_standard_error", [&](std::size_t n) { return falls_[n].acceleration_error; });
    const double off =
        column("gravity_off", [&](std::size_t n) { return std::abs(falls_[n].acceleration.norm() - size); });
    column("flight_residual", [&](std::size_t n) { return falls_[n].residual; });
    if (flights > 1)
      error = 1.86 * off / std::sqrt(static_cast<double>(flights));  // of the median of a normal distribution
    found_.metrics["flights"] = flights;
    if (flights == 0) {
      found_.notes.emplace_back("no file has a free flight of 8 samples or more: units, rate and axes are not checked");
      return;
    }
    const std::string measured = short_number(size, 4) + " +- " + short_number(error, 2) + " m/s^2";
    found_.metrics["gravity"] = size;
    found_.metrics["gravity_standard_error"] = error;
    check_axis(measured);
    check_size(size, measured);
    check_center();
  }

  void check_axis(const std::string& measured) {
    std::string best = conventions_.up;
    const auto tilt = [&](const std::string& up) { return angle_between(axis_of(up), -fall_); };
    const double tilted = tilt(conventions_.up);
    for (const char* up : kUpAxes) {
      if (tilt(up) < tilt(best)) best = up;
    }
    found_.metrics["tilt_degrees"] = tilted;
    const std::string direction = "the axis " + best + " points upward to " + short_number(tilt(best), 2) + " degrees";
    if (tilt(best) > kTilted) {
      contradict("gravity is along no axis: " + direction);
    } else if (best != conventions_.up) {
      contradict("gravity, " + measured + ", is not along " + conventions_.up + ", and " + direction +
                 ": --up=" + best);
    } else if (tilted > kAskew) {
      found_.notes.push_back("gravity is not quite along an axis: " + direction);
    }
  }

  void check_size(double size, const std::string& measured) {
    const std::string instead = measured + " instead of " + short_number(gravity_);
    if (std::abs(size / gravity_ - 1) <= kGravityOff) {
      if (std::abs(size / gravity_ - 1) > kGravityOff / 10) {
        found_.notes.push_back("gravity is " + instead + ": lengths or rate are a little off");
      }
      return;
    }
    const std::string own = short_number(conventions_.length * gravity_ / size, 4);
    std::vector<Unit> lengths = {{"", conventions_.length}}, times = {{"", conventions_.time}};
    lengths.insert(lengths.end(), kLengthUnits.begin(), kLengthUnits.end());
    lengths.push_back({own.c_str(), conventions_.length * gravity_ / size});
    if (timed_) times.insert(times.end(), kTimeUnits.begin(), kTimeUnits.end());
    // Of the conventions that give gravity, the most likely: few changes, named units, a small change of the rate, or
    // one to a usual rate, and the rate that the angular velocities show.
    const double shown = rate_by_turning();
    double least = std::numeric_limits<double>::infinity();
    std::string advice;
    for (const Unit& length : lengths) {
      for (const Unit& time : times) {
        const double faster = std::sqrt(gravity_ / size * conventions_.length / length.value);
        const double left = std::log(faster * time.value / conventions_.time);
        const double rate = faster * rate_of(captures_.front());
        const bool exact = std::abs(left) < kGravityOff / 2;
        const bool usual = std::any_of(std::begin(kUsualRates), std::end(kUsualRates),
                                       [&](double x) { return std::abs(rate / x - 1) < 0.015; });
        const double cost = (*length.name ? 1 : 0) + (length.name == own ? 0.5 : 0) + (*time.name ? 1 : 0) +
                            (exact ? 0 : 1 + std::abs(left) - (usual ? 0.5 : 0)) +
                            (std::isnan(shown) ? 0 : 2 * std::abs(std::log(faster / shown)));
        if (cost >= least) continue;
        least = cost;
        faster_ = faster;
        advice = *length.name ? std::string(" --length-unit ") + length.name : "";
        if (*time.name) advice += std::string(" --time-unit ") + time.name;
        if (!exact) advice += " --rate " + short_number(rate, 4);
        if (std::isnan(shown) && advice == " --rate " + short_number(rate, 4)) advice += " or --length-unit " + own;
      }
    }
    contradict("gravity is " + instead + ":" + advice);
  }

  // The rate that makes the derivative of the quaternions as large as the angular velocities, as a multiple of the one
  // given; NaN where the files have none.
  double rate_by_turning() const {
    std::vector<double> ratios;
    for (const Capture& capture : captures_) {
      const Matrix3Xd& given = capture.angular_velocity;
      if (given.cols() == 0) continue;
      const Matrix3Xd omega = derivative(capture, conventions_.reading, rate_of(capture));
      ratios.push_back(median_length(given, omega) / median_length(omega, omega));
    }
    const double radians = median_of_known(ratios), degrees = angular_unit(Reading().set(kDegrees)) * radians;
    return std::abs(std::log(radians)) < std::abs(std::log(degrees)) ? radians : degrees;
  }

  // The mean of the flights' centres, weighted by what each tells of its directions.
  void check_center() {
    Eigen::Matrix3d weight = Eigen::Matrix3d::Zero();
    Vector3d sum = Vector3d::Zero();
    for (const FreeFall& fall : falls_) {
      if (fall.center.isZero()) continue;
      weight += fall.center_weight;
      sum += fall.center_weight * fall.center;
    }
    if (weight.isZero()) return;
    const Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d> axes(weight);
    const Vector3d pseudo =
        (axes.eigenvalues().array() > kHardly * axes.eigenvalues()[2]).select(axes.eigenvalues().cwiseInverse(), 0);
    const Vector3d center = conventions_.center + axes.eigenvectors() * pseudo.asDiagonal() *
                                                      axes.eigenvectors().transpose() * sum / conventions_.length;
    std::string text = "not the tracked point, but another one moves along a parabola: --center " + text_of(center);
    if (pseudo[0] == 0) {
      text += ", or beside it along " + text_of(axes.eigenvectors().col(0)) + ", the axis about which the flights turn";
    }
    contradict(text);
  }

  void check_turning() {
    // [files][readings], rad/s, between the angular velocity and the derivative of the quaternions.
    std::vector<std::vector<double>> offs(captures_.size(), std::vector<double>(kReadings, kNone));
    const double turning = column("turning", [&](std::size_t n) {
      const Matrix3Xd& given = captures_[n].angular_velocity;
      double size = kNone;
      for (std::size_t k = 0; given.cols() > 0 && k < kReadings; ++k) {
        const Matrix3Xd omega = derivative(captures_[n], k, faster_ * rate_of(captures_[n]));
        offs[n][k] = median_length(angular_unit(k) * given - omega, omega);
        size = median_length(omega, omega);
      }
      return size;
    });
    const std::size_t chosen = conventions_.reading.to_ulong();
    const double now = column("angular_velocity_residual", [&](std::size_t n) { return offs[n][chosen]; });
    if (std::isnan(turning)) {
      found_.notes.emplace_back(
          "no file has angular velocities: only a cube at rest tells the order and the direction of quaternions");
      return check_standing();
    }
    double least = now;
    std::size_t best = chosen;
    nlohmann::json& table = found_.metrics["angular_velocity_residuals"] = nlohmann::json::object();
    for (std::size_t k = 0; k < kReadings; ++k) {
      const double off = median_of_known(of_files([&](std::size_t n) { return offs[n][k]; }));
      table[flags_of(~Reading(k), k)] = off;
      if (off < least) {
        least = off;
        best = k;
      }
    }
    column("angular_velocity_least_residual", [&](std::size_t n) { return offs[n][best]; });
    const std::string text = "angular velocities are " + short_number(now) +
                             " rad/s off the derivative of the quaternions, of " + short_number(turning) + " rad/s";
    if (least > kFarOff * turning) {
      contradict(text + ", and not nearer in another reading: --angular-velocity none");
      return;
    }
    for (std::size_t n = 0; n < captures_.size(); ++n) {
      if (offs[n][best] > kFarOff * found_.files["turning"][n]) wrong_.insert(captures_[n].name);
    }
    if (now > 2 * least && now > kOff * turning) {
      contradict(text + ", and " + short_number(least) + " off with " + flags_of(chosen, best));
    }
  }

  // Degrees between the vertical and the nearest axis of the body at the end, where it is at rest.
  double standing(const Capture& capture, const Reading& reading) const {
    const std::vector<Quaterniond> orientation = orientations_of(capture, reading);
    const Matrix3Xd omega = turning(orientation, rate_of(capture));
    if (omega.rightCols(3).colwise().norm().maxCoeff() > 0.05 * median_length(omega, omega)) return kNone;
    const Vector3d down = orientation.back().conjugate() * (fall_.allFinite() ? fall_ : axis_of(conventions_.up));
    Index axis = 0;
    down.cwiseAbs().maxCoeff(&axis);
    return angle_between(down.cwiseAbs(), Vector3d::Unit(axis));
  }

  void check_standing() {
    double now = kNone;
    std::vector<std::string> others;
    for (std::size_t k = 0; k < kReadingsOfQuaternions; ++k) {
      const double tilt = median_of_known(of_files([&](std::size_t n) { return standing(captures_[n], k); }));
      Reading then = conventions_.reading;
      for (const std::size_t bit : {kScalarLast, kWorldToBody}) then[bit] = Reading(k)[bit];
      if (then == conventions_.reading) now = tilt;
      if (tilt < kAskew) others.push_back(flags_of(conventions_.reading, then));
    }
    found_.metrics["standing_degrees"] = now;
    if (now > kTilted / 2 && !others.empty()) {
      contradict("a cube that rests would stand " + short_number(now, 2) + " degrees askew, and upright with " +
                 listed(others));
    }
  }

  void check_velocities() {
    const auto moved = [&](std::size_t n) -> Matrix3Xd {
      return conventions_.length * differences(captures_[n].position, faster_ * rate_of(captures_[n]));
    };
    const double speed = column("speed", [&](std::size_t n) { return median_length(moved(n), moved(n)); });
    const double off = column("velocity_residual", [&](std::size_t n) {
      const Matrix3Xd& given = captures_[n].velocity;
      return given.cols() > 0 ? median_length(conventions_.length * given - moved(n), moved(n)) : kNone;
    });
    found_.metrics["velocity_residual"] = off;
    if (off > 3 * kOff * speed) {
      contradict("velocities are " + short_number(off) + " m/s off the differences of positions, of " +
                 short_number(speed) + " m/s: --velocity none");
    }
  }

  void check_ground() {
    const double lowest = column("lowest_centre", [&](std::size_t n) {
      const std::vector<double>& z = tosses_[n]["z"];
      return *std::min_element(z.begin(), z.end());
    });
    found_.metrics["lowest_centre"] = lowest;
    if (lowest > 0 || !found_.contradictions.empty()) return;
    contradict("the centre gets to " + short_number(lowest) + " m, below the ground: --ground-height must be below " +
               short_number(conventions_.ground + lowest / conventions_.length));
  }

  void check_each_file() {
    std::set<std::string> odd;
    for (std::size_t n = 0; n < captures_.size(); ++n) {
      const double differs = (falls_[n].acceleration - fall_).norm() / fall_.norm();
      if (differs > kWrongFile) {
        wrong_.insert(captures_[n].name);
      } else if (!(differs < kOddFile) && fall_.allFinite()) {
        odd.insert(captures_[n].name);
      }
    }
    if (!odd.empty()) found_.notes.push_back("no flight with the gravity of the other files is in " + some_of(odd));
    if (!wrong_.empty()) contradict(some_of(wrong_) + " cannot have the conventions of the other files");
  }

  static std::string some_of(const std::set<std::string>& names) {
    constexpr std::size_t kMost = 5;
    std::string text;
    std::size_t count = 0;
    for (const std::string& name : names) {
      if (count++ < kMost) text += (text.empty() ? "" : ", ") + name;
    }
    return count > kMost ? text + " and " + std::to_string(count - kMost) + " more" : text;
  }

  const std::vector<Capture>& captures_;
  const std::vector<Table>& tosses_;
  const Conventions& conventions_;
  const double gravity_;
  const bool timed_;
  std::vector<FreeFall> falls_;                // of the files; count is 0 where there is none
  Vector3d fall_ = Vector3d::Constant(kNone);  // m/s^2, the median over files, in their axes
  double faster_ = 1;                          // the rate that gives gravity, as a multiple of the one given
  std::set<std::string> wrong_;                // files that contradict the others
  CaptureChecks found_;
};

}  // namespace

CaptureChecks check_captures(const std::vector<Capture>& captures, const std::vector<Table>& tosses,
                             const Conventions& conventions, double gravity, bool timed) {
  return Checker(captures, tosses, conventions, gravity, timed).run();
}

}  // namespace lcp::training
