#include "serve/trace_settings.h"

#include <gmock/gmock.h>

namespace septet::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Which of so many requests of the model are traced, from 1.
std::vector<int> traced(TraceSettings& settings, const std::string& model, int requests) {
  std::vector<int> numbers;
  for (int i = 1; i <= requests; ++i) {
    if (settings.sample(model)) {
      numbers.push_back(i);
    }
  }
  return numbers;
}

TEST(TraceSettings, TraceEveryNthRequestUntilTheCountIsUsedUp) {
  TraceSettings settings({.timestamps = true, .rate = 3, .count = 2});

  EXPECT_THAT(traced(settings, "m", 20), ElementsAre(3, 6));
  EXPECT_EQ(settings.of("m").count, 0);
}

TEST(TraceSettings, AreOffUntilSwitchedOn) {
  TraceSettings settings({.rate = 1});
  EXPECT_THAT(traced(settings, "m", 3), ElementsAre());
  EXPECT_FALSE(settings.is_on());

  settings.change("", {.timestamps = true});

  EXPECT_THAT(traced(settings, "m", 3), ElementsAre(1, 2, 3));
  EXPECT_TRUE(settings.is_on());
  EXPECT_EQ(settings.of("m").count, -1);
}

TEST(TraceSettings, AModelsOwnFieldsStandAboveTheGlobalOnes) {
  TraceSettings settings({.timestamps = true, .rate = 2});
  settings.change("own", {.rate = 1, .count = 1});

  EXPECT_THAT(traced(settings, "own", 4), ElementsAre(1));
  EXPECT_THAT(traced(settings, "other", 3), ElementsAre(2));
  EXPECT_THAT(traced(settings, "third", 2), ElementsAre(1));  // counted together with "other"
  settings.change("", {.timestamps = false});
  EXPECT_FALSE(settings.of("own").timestamps);
  EXPECT_EQ(settings.of("own").rate, 1U);
}

TEST(TraceSettings, AFieldGoesBackToTheGlobalOneAndTheGlobalOneToTheStart) {
  TraceSettings settings({.rate = 5});
  settings.change("m", {.rate = 1});
  settings.change("", {.rate = 7, .log_frequency = 3});

  settings.change("m", {.rate = std::optional<std::uint32_t>()});
  EXPECT_EQ(settings.of("m"), settings.of(""));
  EXPECT_EQ(settings.of("m").rate, 7U);
  settings.change("", {.rate = std::optional<std::uint32_t>()});
  EXPECT_EQ(settings.of("m").rate, 5U);
  EXPECT_EQ(settings.of("m").log_frequency, 3U);
}

TEST(TraceSettings, AChangeStartsTheCountAnew) {
  TraceSettings settings({.timestamps = true, .rate = 1, .count = 1});
  EXPECT_THAT(traced(settings, "m", 3), ElementsAre(1));

  settings.change("", {.count = 2});

  EXPECT_THAT(traced(settings, "m", 3), ElementsAre(1, 2));
}

TEST(ApplyTraceConfig, ReadsTritonsWords) {
  TraceStart start;
  for (const char* text : {"rate=10", "count=100", "level=TIMESTAMPS", "mode=triton",
                           "triton,file=/tmp/t.json", "triton,log-frequency=50"}) {
    EXPECT_TRUE(apply_trace_config(text, start).ok()) << text;
  }

  EXPECT_EQ(start.file, "/tmp/t.json");
  EXPECT_EQ(start.setting,
            (TraceSetting{.timestamps = true, .rate = 10, .count = 100, .log_frequency = 50}));
  EXPECT_TRUE(apply_trace_config("count=-1", start).ok());
  EXPECT_EQ(start.setting.count, -1);
}

TEST(ApplyTraceConfig, NamesWhatIsNotOffered) {
  TraceStart start;
  for (const auto& [text, why] :
       {std::pair("level=TENSORS", "the level 'TENSORS' is not offered"),
        std::pair("mode=opentelemetry", "'mode' does not take 'opentelemetry'"),
        std::pair("opentelemetry,url=x", "the mode 'triton' is the only one offered"),
        std::pair("rate=0", "'rate' does not take '0'"), std::pair("rate", "it has no '='"),
        std::pair("triton,rate=1", "'rate' does not take '1'"),
        std::pair("file=/tmp/x", "'file' does not take '/tmp/x'")}) {
    EXPECT_THAT(apply_trace_config(text, start).error().text(), HasSubstr(why));
  }
}

}  // namespace
}  // namespace septet::serve
