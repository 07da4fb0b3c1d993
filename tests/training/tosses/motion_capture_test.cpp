#include "tosses/motion_capture.h"

#include <gtest/gtest.h>

#include "tosses/tosses.h"

namespace lcp::training::motion_capture_test {

using Eigen::Index;
using Eigen::Matrix3Xd;
using Eigen::Quaterniond;
using Eigen::Vector3d;

Vector3d row_of(const Table& table, std::size_t row, std::size_t first) {
  return {table.columns[first][row], table.columns[first + 1][row], table.columns[first + 2][row]};
}

TEST(MotionCaptureTest, DifferencesAreExactForParabolas) {
  Matrix3Xd x(3, 9);
  for (Index k = 0; k < 9; ++k) x.col(k) = Vector3d(1, 2, 3) * k + Vector3d(4, 5, -6) * k * k;
  const Matrix3Xd v = differences(x, 10);
  for (Index k = 0; k < 9; ++k)
    EXPECT_LT((v.col(k) - 10 * (Vector3d(1, 2, 3) + Vector3d(8, 10, -12) * k)).norm(), 1e-11);
}

TEST(MotionCaptureTest, TurningIsExactForConstantAngularVelocity) {
  const Vector3d omega(3, -4, 5);
  std::vector<Quaterniond> q;
  for (int k = 0; k < 9; ++k) {
    q.push_back(Quaterniond(0.5, 0.5, -0.5, 0.5) *
                Quaterniond(Eigen::AngleAxisd(k * omega.norm() / 10, omega.normalized())));
    if (k % 2) q.back().coeffs() *= -1;  // the same orientation
  }
  EXPECT_LT((turning(q, 10).colwise() - omega).norm(), 1e-12);
}

TEST(MotionCaptureTest, RunningMedianKeepsSlopesAndRemovesSpikes) {
  Matrix3Xd x(3, 7);
  for (Index k = 0; k < 7; ++k) x.col(k) = Vector3d(1, -2, 0) * k;
  EXPECT_EQ(running_median(x), x);
  Matrix3Xd spiked = x;
  spiked(2, 3) = 100;
  EXPECT_EQ(running_median(spiked), x);
}

// A body that turns about the vertical, by a marker beside its axis, in files of all up axes, frames and directions.
TEST(MotionCaptureTest, ConvertsAllConventions) {
  const Vector3d center(0.1, 0.2, -0.3);
  const double rate = 100, turn = 0.02;
  for (const char* up : kUpAxes) {
    for (unsigned long bits = 0; bits < 1 << kReadingBits; ++bits) {
      const Reading reading(bits);
      Capture capture{"", rate, Matrix3Xd(3, 9), Eigen::Matrix4Xd(4, 9), Matrix3Xd(3, 9), Matrix3Xd(3, 9)};
      const Vector3d axis = axis_of(up), omega = rate * turn * axis;
      for (Index k = 0; k < 9; ++k) {
        const Quaterniond q(Eigen::AngleAxisd(turn * static_cast<double>(k), axis));
        const Quaterniond written = reading[kWorldToBody] ? q.conjugate() : q;
        capture.quaternion.col(k) = reading[kScalarLast]
                                        ? written.coeffs()
                                        : Eigen::Vector4d(written.w(), written.x(), written.y(), written.z());
        capture.position.col(k) = 1000 * axis - q * center;
        capture.velocity.col(k) = -omega.cross(q * center);
        capture.angular_velocity.col(k) =
            omega / angular_unit(reading);  // of both axes, since it is about the vertical
      }
      const Conventions conventions{1e-3, 1, reading, center, up, 400};
      const Table table = converted(capture, conventions);
      for (std::size_t k = 0; k < 9; ++k) {
        EXPECT_LT((row_of(table, k, 0) - Vector3d(0, 0, 0.6)).norm(), 1e-12);
        EXPECT_LT(row_of(table, k, 7).norm(), 1e-12);
        const Quaterniond q(table["q_w"][k], table["q_x"][k], table["q_y"][k], table["q_z"][k]);
        const Vector3d upward = q * axis;  // an axis of the body that stays vertical
        EXPECT_LT((upward - Vector3d::UnitZ()).norm(), 1e-12);
        EXPECT_LT((row_of(table, k, 10) - omega).norm(), 1e-12);
      }
      capture.velocity.resize(3, 0);
      capture.angular_velocity.resize(3, 0);
      const Table filtered = converted(capture, conventions);
      for (std::size_t k = 0; k < 9; ++k) {
        EXPECT_LT(row_of(filtered, k, 7).norm(), 1e-12);
        EXPECT_LT((row_of(filtered, k, 10) - omega).norm(), 1e-12);
      }
    }
  }
}

}  // namespace lcp::training::motion_capture_test
