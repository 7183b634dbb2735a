#include "os/owned_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "os/owner_tag.h"

namespace septet::os {
namespace {

class OwnedFolderTest : public ::testing::Test {
 protected:
  OwnedFolderTest() {
    std::string name = ::testing::TempDir() + "septet_folder_XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr);
    parent_ = name;
  }
  ~OwnedFolderTest() override { std::filesystem::remove_all(parent_); }

  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(parent_),
                                                  std::filesystem::directory_iterator()));
  }

  std::string parent_;
};

TEST_F(OwnedFolderTest, IsGoneWithItsContentsAtTheEndOfItsLife) {
  {
    const auto folder = OwnedFolder::create("run", parent_);
    ASSERT_TRUE(folder.ok()) << folder.error().text();
    std::ofstream((*folder)->path() + "/file") << "text";
    ASSERT_EQ(entries(), 1u);
  }

  EXPECT_EQ(entries(), 0u);
}

TEST_F(OwnedFolderTest, SweepingTakesTheFolderOfAnEndedOwnerOnly) {
  const auto mine = OwnedFolder::create("mine", parent_);
  ASSERT_TRUE(mine.ok());
  const pid_t owner = fork();
  if (owner == 0) {
    // Ends without a destructor, as a killed owner would.
    _exit(OwnedFolder::create("dead", parent_).value().release() != nullptr ? 0 : 1);
  }
  waitpid(owner, nullptr, 0);
  ASSERT_EQ(entries(), 2u);

  EXPECT_EQ(sweep_folders(parent_), 1);

  EXPECT_TRUE(std::filesystem::exists((*mine)->path()));
}

TEST_F(OwnedFolderTest, AParentThatIsNotThereIsAnError) {
  const auto folder = OwnedFolder::create("run", parent_ + "/none");

  ASSERT_FALSE(folder.ok());
  EXPECT_THAT(folder.error().message, ::testing::HasSubstr(parent_ + "/none"));
}

TEST(OwnerTag, OfThisProcessIsNotGone) { EXPECT_FALSE(owner_is_gone(owner_tag())); }

TEST(OwnerTag, OfAnotherNamespaceOrOfNothingIsNeverGone) {
  EXPECT_FALSE(owner_is_gone("1.2147483000.5"));
  EXPECT_FALSE(owner_is_gone("anything"));
  EXPECT_FALSE(owner_is_gone(""));
}

}  // namespace
}  // namespace septet::os
