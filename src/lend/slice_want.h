// What a holder asks for, in words: "1g.5gb", "3g:2", ">=10GB", "gpu", "MIG-...", "0:3",
// "mps:25%,10GB", "time-slice:8GB".
//
// Pure values; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lend/types.h"

namespace septet::lend {

// Reads one of
//   gpu[:N]                    whole GPUs
//   PROFILE[:N], Ng[:N]        MIG devices of a profile, or of N compute slices
//   >=SIZE[:N]                 the smallest partition with that much memory
//   MIG-UUID, GPU-UUID, G:I    this very partition (gpu@INDEX for a whole GPU)
//   mps:P%[,SIZE][@PROFILE]    P % of the threads of a partition shared by MPS, SIZE of its memory
//   time-slice[:SIZE][@PROFILE]  turns on a shared partition, SIZE of its memory
// kUsage says what is wrong and shows the nearest right form.
Result<SliceWant> parse_slice_want(std::string_view text);

// The words parse_slice_want() reads back to the same value.
std::string to_string(const SliceWant& want);

// Whether an otherwise empty partition could serve (one of the count of) the want.
bool could_serve(const Partition& partition, const SliceWant& want);

// The part of the partition the want takes; only for one that could serve it.
Holding holding_for(const Partition& partition, const SliceWant& want);

// kNoCapacity naming what exists, when the lendable partitions could not serve the want even if
// all of them were free; Ok otherwise.
Result<Ok> check_possible(const std::vector<Partition>& partitions, const SliceWant& want);

}  // namespace septet::lend
