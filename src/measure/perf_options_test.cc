#include "measure/perf_options.h"

#include <gmock/gmock.h>

namespace septet::measure {
namespace {

PerfArguments model() {
  PerfArguments arguments;
  arguments.model = "m";
  return arguments;
}

TEST(PerfOptions, DefaultsArePerfAnalyzers) {
  PerfArguments arguments = model();
  arguments.no_adaptive = true;
  const Result<PerfPlan> plan = plan_of(arguments);

  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->mode, LoadMode::kConcurrency);
  EXPECT_EQ(plan->begin, 1);
  EXPECT_EQ(plan->end, 1);
  EXPECT_EQ(plan->rules.window, milliseconds(5000));
  EXPECT_EQ(plan->rules.stability_percent, 10);
  EXPECT_EQ(plan->rules.max_windows, 10);
  EXPECT_FALSE(plan->rules.percentile.has_value());
  EXPECT_FALSE(plan->grpc);
}

TEST(PerfOptions, WindowsAreAdaptiveUntilAWordAboutThemIsSaid) {
  EXPECT_TRUE(plan_of(model())->rules.confidence_percent.has_value());

  PerfArguments arguments = model();
  arguments.measurement_interval_ms = 5000;
  EXPECT_FALSE(plan_of(arguments)->rules.confidence_percent.has_value());

  arguments.adaptive = true;
  EXPECT_TRUE(plan_of(arguments)->rules.confidence_percent.has_value());
  EXPECT_EQ(plan_of(arguments)->rules.window, milliseconds(5000));
}

TEST(PerfOptions, TheGuidesCommandIsUnderstood) {
  PerfArguments arguments = model();
  arguments.concurrency_range = "1:100";
  arguments.percentile = 90;
  arguments.measurement_interval_ms = 10'000;
  arguments.shapes = {"data_0:3,224,224"};

  const Result<PerfPlan> plan = plan_of(arguments);

  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->end, 100);
  EXPECT_EQ(plan->step, 1);
  EXPECT_EQ(*plan->rules.percentile, 90);
  EXPECT_THAT(plan->input.shapes.at("data_0"), testing::ElementsAre(3, 224, 224));
}

TEST(PerfOptions, RatesMayBeFractions) {
  PerfArguments arguments = model();
  arguments.request_rate_range = "0.5:2.5:0.5";
  arguments.request_distribution = "poisson";

  const Result<PerfPlan> plan = plan_of(arguments);

  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->mode, LoadMode::kRequestRate);
  EXPECT_EQ(plan->step, 0.5);
  EXPECT_EQ(plan->distribution, RequestDistribution::kPoisson);
}

TEST(PerfOptions, CountWindowsHaveFiftyRequestsUnlessSaid) {
  PerfArguments arguments = model();
  arguments.measurement_mode = "count_windows";
  EXPECT_EQ(plan_of(arguments)->rules.requests_per_window, 50U);

  arguments.measurement_request_count = 200;
  EXPECT_EQ(plan_of(arguments)->rules.requests_per_window, 200U);
}

TEST(PerfOptions, AHeaderIsSplitAtItsFirstColon) {
  PerfArguments arguments = model();
  arguments.headers = {"Authorization: Bearer a:b"};

  EXPECT_THAT(plan_of(arguments)->headers,
              testing::ElementsAre(testing::Pair("Authorization", "Bearer a:b")));
}

TEST(PerfOptions, FilesOfInputDataAreKeptApartFromMadeUpData) {
  PerfArguments arguments = model();
  arguments.input_data = {"zero"};
  EXPECT_EQ(plan_of(arguments)->input.kind, InputKind::kZero);

  arguments.input_data = {"a.json", "b.json"};
  EXPECT_THAT(plan_of(arguments)->input_files, testing::ElementsAre("a.json", "b.json"));
}

TEST(PerfOptions, ATraceIsReplayedOnceAndAllOfItCounts) {
  PerfArguments arguments = model();
  arguments.request_trace = "trace.csv";
  PerfPlan plan = *plan_of(arguments);

  plan.use_intervals({seconds(0), seconds(30), seconds(70)});

  EXPECT_EQ(plan.rules.fixed_windows, 10);
  EXPECT_EQ(plan.rules.window, seconds(10));
  EXPECT_NEAR(plan.begin, 0.03, 1e-12);
}

TEST(PerfOptions, ARequestCountIsOneWindowOfSoManyRequests) {
  PerfArguments arguments = model();
  arguments.request_count = 500;
  arguments.warm_up_request_count = 10;

  const PerfPlan plan = *plan_of(arguments);

  EXPECT_EQ(plan.rules.requests_per_window, 500U);
  EXPECT_EQ(plan.rules.fixed_windows, 1);
  EXPECT_EQ(plan.rules.warm_up_requests, 10U);
  EXPECT_FALSE(plan.rules.confidence_percent.has_value());
}

TEST(PerfOptions, RequestParametersHaveTypes) {
  PerfArguments arguments = model();
  arguments.request_parameters = {"n:-3:int", "u:7:uint", "x:0.5:double", "b:true:BOOL",
                                  "s:a:b:string"};

  const auto parameters = plan_of(arguments)->input.parameters;

  EXPECT_EQ(std::get<std::int64_t>(parameters.at("n")), -3);
  EXPECT_EQ(std::get<std::uint64_t>(parameters.at("u")), 7U);
  EXPECT_EQ(std::get<double>(parameters.at("x")), 0.5);
  EXPECT_TRUE(std::get<bool>(parameters.at("b")));
  EXPECT_EQ(std::get<std::string>(parameters.at("s")), "a:b");
}

TEST(PerfOptions, SequenceModelsAreCalledAsynchronouslyUnlessSaidOtherwise) {
  ModelDescription sequences;
  sequences.is_sequence_model = true;
  PerfArguments arguments = model();

  PerfPlan plan = *plan_of(arguments);
  plan.note_model(sequences);
  EXPECT_EQ(plan.call_mode, CallMode::kAsync);

  arguments.sync = true;
  plan = *plan_of(arguments);
  plan.note_model(sequences);
  EXPECT_EQ(plan.call_mode, CallMode::kSync);
}

TEST(PerfOptions, GrpcMessagesMayBeCompressed) {
  PerfArguments arguments = model();
  arguments.protocol = "grpc";
  arguments.grpc_compression = "gzip";

  EXPECT_EQ(plan_of(arguments)->grpc_compression, MessageCompression::kGzip);
}

TEST(PerfOptions, SequenceIdsMayBeLimited) {
  PerfArguments arguments = model();
  arguments.sequence_id_range = "100:199";

  EXPECT_EQ(plan_of(arguments)->first_sequence_id, 100U);
  EXPECT_EQ(plan_of(arguments)->last_sequence_id, 199U);
}

struct Refused {
  const char* name;
  void (*change)(PerfArguments&);
  const char* says;
};

class RefusedOptions : public testing::TestWithParam<Refused> {};

TEST_P(RefusedOptions, SayWhatIsWrong) {
  PerfArguments arguments = model();
  GetParam().change(arguments);

  const Result<PerfPlan> plan = plan_of(arguments);

  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(plan.error().text(), testing::HasSubstr(GetParam().says));
}

using A = PerfArguments;
INSTANTIATE_TEST_SUITE_P(
    PerfOptions, RefusedOptions,
    testing::Values(
        Refused{"no_model", [](A& a) { a.model.clear(); }, "-m MODEL"},
        Refused{"two_ranges",
                [](A& a) {
                  a.concurrency_range = "1";
                  a.request_rate_range = "1";
                },
                "only one of"},
        Refused{"intervals_and_range",
                [](A& a) {
                  a.concurrency_range = "1";
                  a.request_intervals = "f";
                },
                "only one of"},
        Refused{"old_and_new_load",
                [](A& a) {
                  a.old_concurrency = 4;
                  a.request_rate_range = "10";
                },
                "old words"},
        Refused{"range_of_words", [](A& a) { a.concurrency_range = "a:b"; }, "not a range"},
        Refused{"range_of_four", [](A& a) { a.concurrency_range = "1:2:3:4"; }, "not a range"},
        Refused{"fractional_concurrency", [](A& a) { a.concurrency_range = "1.5"; }, "whole"},
        Refused{"zero_step", [](A& a) { a.concurrency_range = "1:4:0"; }, "not a range"},
        Refused{"negative_rate", [](A& a) { a.request_rate_range = "-5"; }, "not a range"},
        Refused{"endless_without_limit", [](A& a) { a.concurrency_range = "1:0"; },
                "--latency-threshold"},
        Refused{"search_without_limit",
                [](A& a) {
                  a.concurrency_range = "1:8";
                  a.binary_search = true;
                },
                "--latency-threshold"},
        Refused{"search_backwards",
                [](A& a) {
                  a.concurrency_range = "8:1";
                  a.binary_search = true;
                  a.latency_threshold_ms = 5;
                },
                "START not above END"},
        Refused{"search_without_end",
                [](A& a) {
                  a.concurrency_range = "1:0";
                  a.binary_search = true;
                  a.latency_threshold_ms = 5;
                },
                "START and END"},
        Refused{"streaming_over_http", [](A& a) { a.streaming = true; }, "-i grpc"},
        Refused{"sync_and_async",
                [](A& a) {
                  a.sync = true;
                  a.async = true;
                },
                "exclude"},
        Refused{"protocol", [](A& a) { a.protocol = "rest"; }, "neither http nor grpc"},
        Refused{"distribution", [](A& a) { a.request_distribution = "normal"; }, "poisson"},
        Refused{"mode", [](A& a) { a.measurement_mode = "windows"; }, "count_windows"},
        Refused{"percentile_0", [](A& a) { a.percentile = 0; }, "1 to 99"},
        Refused{"percentile_100", [](A& a) { a.percentile = 100; }, "1 to 99"},
        Refused{"no_window", [](A& a) { a.measurement_interval_ms = 0; }, "above 0"},
        Refused{"no_trials", [](A& a) { a.max_trials = 0; }, "above 0"},
        Refused{"batch_0", [](A& a) { a.batch_size = 0; }, "below 1"},
        Refused{"cuda_memory", [](A& a) { a.shared_memory = "cuda"; }, "none or system"},
        Refused{"no_sequences", [](A& a) { a.live_sequences = 0; }, "--num-of-sequences"},
        Refused{"sequence_ids", [](A& a) { a.sequence_id_range = "9:3"; }, "START:END"},
        Refused{"trace_speed",
                [](A& a) {
                  a.request_trace = "f";
                  a.trace_speed = 0;
                },
                "--trace-speed"},
        Refused{"shape_without_name", [](A& a) { a.shapes = {"1,2"}; }, "NAME:1,2,3"},
        Refused{"shape_of_words", [](A& a) { a.shapes = {"IN:a"}; }, "NAME:1,2,3"},
        Refused{"shape_of_zero", [](A& a) { a.shapes = {"IN:0"}; }, "NAME:1,2,3"},
        Refused{"compression_over_http", [](A& a) { a.grpc_compression = "gzip"; }, "-i grpc"},
        Refused{"compression",
                [](A& a) {
                  a.protocol = "grpc";
                  a.grpc_compression = "brotli";
                },
                "deflate"},
        Refused{"parameter_without_type", [](A& a) { a.request_parameters = {"a:b"}; },
                "NAME:VALUE:TYPE"},
        Refused{"parameter_of_another_type", [](A& a) { a.request_parameters = {"a:b:int"}; },
                "NAME:VALUE:TYPE"},
        Refused{"header_without_colon", [](A& a) { a.headers = {"x"}; }, "NAME:VALUE"},
        Refused{"header_with_line_end", [](A& a) { a.headers = {"x:a\r\nb:c"}; }, "NAME:VALUE"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(ParseIntervals, ReadsMicrosecondsOneALine) {
  EXPECT_THAT(*parse_intervals("20000\n5000\r\n\n30000"),
              testing::ElementsAre(milliseconds(20), milliseconds(5), milliseconds(30)));
}

TEST(ParseIntervals, NamesTheLineThatIsNoNumber) {
  EXPECT_THAT(parse_intervals("1\nx\n").error().message, testing::HasSubstr("line 2"));
  EXPECT_FALSE(parse_intervals("0\n0\n").ok());
  EXPECT_FALSE(parse_intervals("").ok());
}

TEST(PerfOptions, MetricsAreAtTritonsPortUnlessSaid) {
  struct Case {
    std::vector<std::string> urls;
    const char* metrics;
  };
  for (const Case& given :
       {Case{{}, "localhost:8002/metrics"}, Case{{"host:8000", "other"}, "host:8002/metrics"},
        Case{{"http://host:8000/"}, "host:8002/metrics"},
        Case{{"https://host"}, "host:8002/metrics"}, Case{{"[::1]:8000"}, "[::1]:8002/metrics"}}) {
    PerfArguments arguments = model();
    arguments.urls = given.urls;
    arguments.collect_metrics = true;

    const Result<PerfPlan> plan = plan_of(arguments);

    ASSERT_TRUE(plan.ok() && plan->metrics);
    EXPECT_EQ(plan->metrics->url, given.metrics);
    EXPECT_EQ(plan->metrics->interval, seconds(1));
  }
  PerfArguments arguments = model();
  arguments.collect_metrics = true;
  arguments.metrics_url = "gpu-host:9400/metrics";
  arguments.metrics_interval_ms = 250;
  EXPECT_EQ(plan_of(arguments)->metrics->url, "gpu-host:9400/metrics");
  EXPECT_EQ(plan_of(arguments)->metrics->interval, milliseconds(250));
  EXPECT_FALSE(plan_of(model())->metrics.has_value());
}

TEST(PerfOptions, MetricsWordsThatSayNothingAreRefused) {
  const auto refused = [](auto set) {
    PerfArguments arguments = model();
    set(arguments);
    const Result<PerfPlan> plan = plan_of(arguments);
    return plan.ok() ? std::string() : plan.error().text();
  };

  EXPECT_THAT(refused([](auto& words) { words.metrics_url = "host"; }),
              testing::HasSubstr("--metrics-url says nothing without --collect-metrics"));
  EXPECT_THAT(refused([](auto& words) { words.metrics_interval_ms = 100; }),
              testing::HasSubstr("--metrics-interval says nothing"));
  EXPECT_THAT(refused([](auto& words) {
                words.collect_metrics = true;
                words.metrics_interval_ms = 0;
              }),
              testing::HasSubstr("above 0 ms"));
  EXPECT_THAT(refused([](auto& words) {
                words.collect_metrics = true;
                words.urls = {"unix:/run/s"};
              }),
              testing::HasSubstr("--metrics-url"));
}

}  // namespace
}  // namespace septet::measure
