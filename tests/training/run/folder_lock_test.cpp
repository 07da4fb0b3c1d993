#include "run/folder_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "run/error.h"

namespace lcp::training::folder_lock_test {

namespace fs = std::filesystem;

class FolderLockTest : public ::testing::Test {
 protected:
  FolderLockTest() : folder_(fs::temp_directory_path() / ("torchlcp_lock_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~FolderLockTest() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(FolderLockTest, IsOfOneHolder) {
  {
    FolderLock lock(folder_ / "out");
    EXPECT_THROW(FolderLock(folder_ / "out"), UsageError);
    const FolderLock moved = std::move(lock);
    EXPECT_THROW(FolderLock(folder_ / "out"), UsageError);
    EXPECT_EQ(moved.path(), folder_ / "out");
  }
  EXPECT_NO_THROW(FolderLock(folder_ / "out"));
}

TEST_F(FolderLockTest, RemovesTheEmptyFoldersThatItMade) {
  { const FolderLock lock(folder_ / "a" / "b" / "c/"); }
  EXPECT_FALSE(fs::exists(folder_ / "a"));
  {
    const FolderLock lock(folder_ / "a" / "b");
    std::ofstream(folder_ / "a" / "file");
  }
  EXPECT_TRUE(fs::exists(folder_ / "a" / "file"));
  EXPECT_FALSE(fs::exists(folder_ / "a" / "b"));
  fs::create_directory(folder_ / "a" / "b");
  { const FolderLock lock(folder_ / "a" / "b"); }
  EXPECT_TRUE(fs::exists(folder_ / "a" / "b"));
}

TEST_F(FolderLockTest, LeavesAFolderThatIsLocked) {
  auto inner = std::make_unique<FolderLock>(folder_ / "a" / "b");
  const FolderLock outer(folder_ / "a");
  inner.reset();
  EXPECT_FALSE(fs::exists(folder_ / "a" / "b"));
  EXPECT_TRUE(fs::exists(folder_ / "a"));
  EXPECT_FALSE(remove_empty_folder(folder_ / "a"));
}

// Two processes lock a folder in turns, and each removes it before it unlocks it. If one could lock a folder that the
// other has removed already, both would hold a lock at once and one would find the other's file.
TEST_F(FolderLockTest, IsNeverThatOfARemovedFolder) {
  const fs::path out = folder_ / "out", held = folder_ / "held";
  const auto take_turns = [&] {
    for (int turn = 0; turn < 600; ++turn) {
      std::optional<FolderLock> lock;
      while (!lock) {
        try {
          lock.emplace(out);
        } catch (const UsageError&) {
        }
      }
      const int file = open(held.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0666);
      if (file < 0) return false;
      close(file);
      unlink(held.c_str());
      rmdir(out.c_str());
    }
    return true;
  };
  const pid_t child = fork();
  if (child == 0) _exit(take_turns() ? 0 : 1);
  EXPECT_TRUE(take_turns());
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace lcp::training::folder_lock_test
