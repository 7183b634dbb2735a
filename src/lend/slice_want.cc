#include "lend/slice_want.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/units.h"

namespace septet::lend {

namespace {

constexpr unsigned kMostPartitions = 64;  // per lease; more is a typing mistake
constexpr const char* kForms =
    "write a profile such as 1g.5gb or 3g:2, >=10GB, gpu, mps:25%,10GB or time-slice:8GB";

Error bad_want(std::string_view text, std::string_view why) {
  return make_error(ErrorKind::kUsage,
                    fmt::format("the slice '{}' is not understood: {}", text, why), kForms);
}

// "3g" or "1g.5gb", "1c.3g.20gb", "1g.5gb+me".
bool looks_like_profile(std::string_view word) {
  std::size_t digits = 0;
  while (digits < word.size() && word[digits] >= '0' && word[digits] <= '9') {
    ++digits;
  }
  return digits > 0 && digits < word.size() && (word[digits] == 'g' || word[digits] == 'c') &&
         (digits + 1 == word.size() || word[digits + 1] == '.');
}

bool looks_like_index(std::string_view word) {
  const auto parts = split(word, ':');
  return (parts.size() == 2 || parts.size() == 3) &&
         std::all_of(parts.begin(), parts.end(),
                     [](std::string_view part) { return parse_uint(part).has_value(); });
}

// Takes ":N" off the end of the word; the default is 1.
Result<unsigned> take_count(std::string_view text, std::string_view& word) {
  const std::size_t colon = word.find(':');
  if (colon == std::string_view::npos) {
    return 1U;
  }
  const auto count = parse_uint(word.substr(colon + 1));
  if (!count || *count == 0 || *count > kMostPartitions) {
    return bad_want(text,
                    fmt::format("the count after ':' is a number from 1 to {}", kMostPartitions));
  }
  word = word.substr(0, colon);
  return static_cast<unsigned>(*count);
}

Result<unsigned> parse_percent(std::string_view text, std::string_view word) {
  if (!word.ends_with('%')) {
    return bad_want(text, "mps takes a percentage, such as mps:25%");
  }
  const auto percent = parse_uint(word.substr(0, word.size() - 1));
  // The daemon silently takes nonsense for 100, so nothing outside may reach it.
  if (!percent || *percent < 1 || *percent > 100) {
    return bad_want(text, "the percentage is a whole number from 1 to 100");
  }
  return static_cast<unsigned>(*percent);
}

Result<SliceWant> parse_shared(std::string_view text, SliceKind kind, std::string_view rest) {
  SliceWant want;
  want.kind = kind;
  if (const std::size_t at = rest.find('@'); at != std::string_view::npos) {
    const std::string_view place = rest.substr(at + 1);
    if (looks_like_profile(place) || place == "gpu") {
      want.profile = place;
    } else if (place.starts_with("MIG-") || place.starts_with("GPU-") || looks_like_index(place) ||
               parse_uint(place)) {
      want.exact = place;
    } else {
      return bad_want(text, "behind '@' stands a profile, 'gpu', a UUID or an index");
    }
    rest = rest.substr(0, at);
  }
  std::string_view memory = rest;
  if (kind == SliceKind::kMps) {
    const std::size_t comma = rest.find(',');
    const Result<unsigned> percent = parse_percent(text, rest.substr(0, comma));
    SEPTET_TRY(percent);
    want.percent = *percent;
    memory = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    if (comma != std::string_view::npos && memory.empty()) {
      return bad_want(text, "a memory size follows the comma");
    }
  }
  if (!memory.empty()) {
    const Result<std::int64_t> size = parse_memory_mib(memory);
    if (!size.ok() || *size == 0) {
      return bad_want(text, size.ok() ? "the memory size is above zero" : size.error().message);
    }
    want.min_memory_mib = *size;
  }
  return want;
}

// " (mps only)" where the configuration lends shares and not the whole.
std::string restriction_text(const Partition& partition) {
  return partition.kinds.size() == 1 ? fmt::format(" ({} only)", to_string(partition.kinds[0]))
                                     : std::string();
}

// What exists, as "7 of 1g.5gb and 1 of gpu".
std::string inventory_text(const std::vector<Partition>& partitions) {
  std::map<std::string, unsigned> counts;
  std::string why_not;
  for (const Partition& partition : partitions) {
    if (partition.is_lendable) {
      ++counts[partition.profile + restriction_text(partition)];
    } else if (why_not.empty()) {
      why_not = fmt::format(": {} {}", partition.index, partition.why_not_lendable);
    }
  }
  std::vector<std::string> words;
  for (const auto& [profile, count] : counts) {
    words.push_back(fmt::format("{} of {}", count, profile));
  }
  return words.empty() ? "nothing lendable" + why_not : join_words(words);
}

bool profile_matches(const Partition& partition, std::string_view profile) {
  if (profile.empty() || partition.profile == profile) {
    return true;
  }
  // "3g" stands for every profile of three slices, but not for a part of one ("1c.3g.20gb").
  return profile.find('.') == std::string_view::npos && partition.profile.size() > profile.size() &&
         partition.profile.starts_with(profile) && partition.profile[profile.size()] == '.';
}

}  // namespace

Result<SliceWant> parse_slice_want(std::string_view text) {
  std::string_view word = trim(text);
  if (word.starts_with("mps:")) {
    return parse_shared(text, SliceKind::kMps, word.substr(4));
  }
  if (word.starts_with("gpu@") && word.size() > 4) {
    SliceWant whole;
    whole.kind = SliceKind::kWholeGpu;
    whole.exact = word.substr(4);
    return whole;
  }
  if (word == "mps" || word.starts_with("mps@")) {
    return bad_want(text, "mps takes a percentage, such as mps:25%");
  }
  if (word == "time-slice" || word.starts_with("time-slice:") || word.starts_with("time-slice@")) {
    word.remove_prefix(std::string_view("time-slice").size());
    if (word.starts_with(':')) {
      word.remove_prefix(1);
    }
    return parse_shared(text, SliceKind::kTimeSlice, word);
  }
  SliceWant want;
  if (word.starts_with("MIG-") || word.starts_with("GPU-") || looks_like_index(word)) {
    want.kind = word.starts_with("GPU-") ? SliceKind::kWholeGpu : SliceKind::kInstance;
    want.exact = word;
    return want;
  }
  const Result<unsigned> count = take_count(text, word);
  SEPTET_TRY(count);
  want.count = *count;
  if (word == "gpu") {
    want.kind = SliceKind::kWholeGpu;
    return want;
  }
  if (word.starts_with(">=")) {
    const Result<std::int64_t> size = parse_memory_mib(word.substr(2));
    if (!size.ok() || *size == 0) {
      return bad_want(text, "behind '>=' stands a memory size above zero");
    }
    want.min_memory_mib = *size;
    return want;
  }
  if (!looks_like_profile(word)) {
    return bad_want(text, "it is no profile, UUID, index or technique");
  }
  want.profile = word;
  return want;
}

std::string to_string(const SliceWant& want) {
  const std::string count = want.count == 1 ? "" : fmt::format(":{}", want.count);
  const std::string place = want.exact             ? "@" + *want.exact
                            : want.profile.empty() ? ""
                                                   : "@" + want.profile;
  switch (want.kind) {
    case SliceKind::kWholeGpu:
      return want.exact ? "gpu@" + *want.exact : "gpu" + count;
    case SliceKind::kInstance:
      if (want.exact) {
        return *want.exact;
      }
      return want.profile.empty() ? fmt::format(">={}MiB{}", want.min_memory_mib, count)
                                  : want.profile + count;
    case SliceKind::kMps:
      return fmt::format("mps:{}%{}{}", want.percent,
                         want.min_memory_mib == 0 ? "" : fmt::format(",{}MiB", want.min_memory_mib),
                         place);
    case SliceKind::kTimeSlice:
      return fmt::format("time-slice{}{}",
                         want.min_memory_mib == 0 ? "" : fmt::format(":{}MiB", want.min_memory_mib),
                         place);
  }
  return {};
}

bool could_serve(const Partition& partition, const SliceWant& want) {
  const bool is_kind_lent =
      partition.kinds.empty() ||
      std::find(partition.kinds.begin(), partition.kinds.end(), want.kind) != partition.kinds.end();
  if (!partition.is_lendable || !is_kind_lent || partition.memory_mib < want.min_memory_mib) {
    return false;
  }
  if (want.exact) {
    return partition.id.value() == *want.exact || partition.index == *want.exact ||
           partition.index + ":0" == *want.exact;
  }
  switch (want.kind) {
    case SliceKind::kWholeGpu:
      return partition.is_whole_gpu();
    case SliceKind::kInstance:
      // ">=10GB" is content with any partition; a profile is a MIG device by its name.
      return profile_matches(partition, want.profile);
    case SliceKind::kMps:
      return partition.mps_clients > 0 && profile_matches(partition, want.profile);
    case SliceKind::kTimeSlice:
      return profile_matches(partition, want.profile);
  }
  return false;
}

Holding holding_for(const Partition& partition, const SliceWant& want) {
  Holding holding;
  holding.partition = partition.id;
  holding.kind = want.kind == SliceKind::kInstance && partition.is_whole_gpu()
                     ? SliceKind::kWholeGpu
                     : want.kind;
  holding.memory_mib = partition.memory_mib;
  holding.share_permille = partition.share_permille;
  if (want.kind == SliceKind::kMps) {
    holding.percent = want.percent;
    // Without a size the share of memory follows the share of threads, in whole GiB from one on: an
    // MPS daemon can be asked for no other limit that it also answers.
    constexpr std::int64_t kGib = 1024;
    const std::int64_t part = partition.memory_mib * want.percent / 100;
    const std::int64_t whole = part < kGib ? part : part / kGib * kGib;
    holding.memory_mib = want.min_memory_mib > 0 ? want.min_memory_mib : whole;
    holding.share_permille = std::max(1U, partition.share_permille * want.percent / 100);
  } else if (want.kind == SliceKind::kTimeSlice) {
    holding.memory_mib = want.min_memory_mib > 0 ? want.min_memory_mib : partition.memory_mib / 4;
    // Turns are equal whatever the memory, but memory is what runs out: it is what is counted.
    const std::int64_t part =
        partition.memory_mib > 0
            ? partition.share_permille * holding.memory_mib / partition.memory_mib
            : partition.share_permille;
    holding.share_permille = std::max(1U, static_cast<unsigned>(part));
  }
  return holding;
}

Result<Ok> check_possible(const std::vector<Partition>& partitions, const SliceWant& want) {
  const auto able = std::count_if(partitions.begin(), partitions.end(),
                                  [&](const Partition& each) { return could_serve(each, want); });
  if (able >= static_cast<std::ptrdiff_t>(want.count)) {
    return Ok{};
  }
  const std::string have = able == 0 ? "none can serve it" : fmt::format("only {} can", able);
  return make_error(ErrorKind::kNoCapacity,
                    fmt::format("no partitions for {}: {}", to_string(want), have),
                    fmt::format("there is: {}", inventory_text(partitions)));
}

}  // namespace septet::lend
