#include "os/durable_file.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "os/owned_folder.h"

namespace septet::os {
namespace {

class DurableFile : public testing::Test {
 protected:
  void SetUp() override {
    auto made = OwnedFolder::create("durable");
    ASSERT_TRUE(made.ok());
    folder_ = *std::move(made);
    path_ = folder_->path() + "/file";
  }

  std::unique_ptr<OwnedFolder> folder_;
  std::string path_;
};

TEST_F(DurableFile, IsReplacedWhole) {
  ASSERT_TRUE(replace_file(path_, "first").ok());
  ASSERT_TRUE(replace_file(path_, "second").ok());

  EXPECT_EQ(read_whole_file(path_).value(), "second");
}

TEST_F(DurableFile, LeavesNoTemporaryBehind) {
  ASSERT_TRUE(replace_file(path_, "text").ok());

  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_->path()),
                          std::filesystem::directory_iterator()),
            1);
}

TEST_F(DurableFile, Grows) {
  ASSERT_TRUE(replace_file(path_, "a\n").ok());
  auto file = AppendFile::open(path_);
  ASSERT_TRUE(file.ok());

  ASSERT_TRUE(file->append("b\n").ok());

  EXPECT_EQ(read_whole_file(path_).value(), "a\nb\n");
}

TEST_F(DurableFile, CreatingEmptiesTheFileThatIsThere) {
  ASSERT_TRUE(replace_file(path_, "old\n").ok());

  auto file = AppendFile::create(path_);

  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->append("new\n").ok());
  EXPECT_EQ(read_whole_file(path_).value(), "new\n");
}

TEST_F(DurableFile, ADeviceMayStandInForAFile) {
  auto file = AppendFile::create("/dev/null");

  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->append("x").ok());
}

TEST_F(DurableFile, AFullDeviceIsSaid) {
  auto file = AppendFile::create("/dev/full");

  ASSERT_TRUE(file.ok());
  EXPECT_THAT(file->append("x").error().message, testing::HasSubstr("/dev/full"));
}

TEST_F(DurableFile, SaysThatThereIsNone) {
  EXPECT_EQ(read_whole_file(path_).error().kind, ErrorKind::kNotFound);
  EXPECT_TRUE(remove_file(path_).ok());
}

TEST_F(DurableFile, RefusesAFileThatIsTooLarge) {
  ASSERT_TRUE(replace_file(path_, std::string(100, 'x')).ok());

  EXPECT_FALSE(read_whole_file(path_, 99).ok());
}

TEST_F(DurableFile, MakesAllFolders) {
  ASSERT_TRUE(make_folder(folder_->path() + "/a/b/c").ok());

  EXPECT_TRUE(std::filesystem::is_directory(folder_->path() + "/a/b/c"));
  EXPECT_TRUE(make_folder(folder_->path() + "/a/b/c").ok());
}

TEST_F(DurableFile, NamesThePathThatIsNoFolder) {
  ASSERT_TRUE(replace_file(path_, "text").ok());

  const auto made = make_folder(path_ + "/below");

  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, testing::HasSubstr(path_));
}

}  // namespace
}  // namespace septet::os
