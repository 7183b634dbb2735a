#include "partition/picture.h"

#include <gtest/gtest.h>

namespace septet::partition {
namespace {

TEST(Picture, DrawsALayout) {
  const Layout layout{.mode = gpu::MigMode::kEnabled,
                      .instances = {{gpu::ProfileId(14), "2g.10gb", {0, 2}, {2}},
                                    {gpu::ProfileId(19), "1g.5gb", {3, 1}, {1}}}};

  EXPECT_EQ(draw_layout(layout, 4),
            "unit    0         1         2         3\n"
            "has     [2g.10gb           ]          [1g.5gb  ]\n");
}

}  // namespace
}  // namespace septet::partition
