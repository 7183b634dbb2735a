// A layout drawn with letters, for --explain.
//
//   unit    0         1         2         3         4         5         6         7
//   before  [1g.5gb  ][1g.5gb  ][x 1g.5gb][x 1g.5gb][x 1g.5gb][x 1g.5gb][x 1g.5gb]
//   after   [1g.5gb  ][1g.5gb  ][+ 2g.10gb         ][+ 3g.20gb                              ]
//
// x goes, + comes, ! is busy. Pure.
#pragma once

#include <string>

#include "partition/gpu_plan.h"

namespace septet::partition {

// The two layouts of a plan, lines ending with line ends.
std::string draw_plan(const GpuPlan& plan);
// One layout of a GPU with this many units.
std::string draw_layout(const Layout& layout, unsigned units);

}  // namespace septet::partition
