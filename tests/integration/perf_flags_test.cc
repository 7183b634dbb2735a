// Every option of perf_analyzer: done, or refused by its name with what to do instead.
#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "integration/perf_fixture.h"
#include "support/simulated_server.h"

namespace septet {
namespace {

using test::PerfTest;
using testing::HasSubstr;

// Words of one run, beside -m, -u and a short window.
struct Words {
  std::vector<std::string> words;
  std::string refused = {};  // what the refusal says; empty = the run succeeds
};

// FILE is a JSON file of data, DIR a folder of it, GAPS a file of intervals, OUT a file to write.
std::vector<Words> every_option() {
  return {
      // The server.
      {{"-x", "1"}},
      {{"-i", "HTTP"}},
      {{"--service-kind", "triton"}},
      {{"--service-kind", "tfserving"}, "KServe v2"},
      {{"--service-kind", "torchserve"}, "KServe v2"},
      {{"--service-kind", "triton_c_api"}, "KServe v2"},
      {{"--service-kind", "openai"}, "KServe v2"},
      {{"--model-signature-name", "serving_default"}},
      {{"--model-signature-name", "predict"}, "leave it out"},
      {{"--triton-server-directory", "/opt/other"}, "septet serve --model-repository"},
      {{"--model-repository", "/models"}, "septet serve --model-repository"},
      {{"-H", "X-Team: blue", "-H", "X-Colon:a:b"}},
      {{"--grpc-compression-algorithm", "none"}},
      {{"--grpc-compression-algorithm", "gzip"}, "-i grpc"},
      {{"--grpc-compression-algorithm", "brotli", "-i", "grpc"}, "deflate"},
      // With effect in perf_tls_test.cc; here without anything to encrypt.
      {{"--ssl-grpc-use-ssl"}, "-i grpc"},
      {{"--ssl-grpc-root-certifications-file", "ca.pem", "-i", "grpc"}, "--ssl-grpc-use-ssl"},
      {{"--ssl-grpc-private-key-file", "key.pem", "-i", "grpc"}, "--ssl-grpc-use-ssl"},
      {{"--ssl-grpc-certificate-chain-file", "chain.pem", "-i", "grpc"}, "--ssl-grpc-use-ssl"},
      {{"--ssl-https-verify-peer", "1"}, "https://"},
      {{"--ssl-https-verify-host", "2"}, "https://"},
      {{"--ssl-https-ca-certificates-file", "ca.pem"}, "https://"},
      {{"--ssl-https-client-certificate-file", "cert.pem"}, "https://"},
      {{"--ssl-https-client-certificate-type", "PEM"}, "https://"},
      {{"--ssl-https-private-key-file", "key.pem"}, "https://"},
      {{"--ssl-https-private-key-type", "PEM"}, "https://"},
      // The load.
      {{"--concurrency-range", "1:2:1"}},
      {{"--request-rate-range", "500:500:1"}},
      {{"--request-rate-range", "500", "--request-distribution", "poisson"}},
      {{"--request-rate-range", "500", "--request-distribution", "constant"}},
      {{"--request-intervals", "GAPS"}},
      {{"--concurrency-range", "1:4:3", "--binary-search", "-l", "10000"}},
      {{"--binary-search"}, "--latency-threshold"},
      {{"--max-threads", "16"}},
      {{"-a"}},
      {{"--async"}},
      {{"--sync"}},
      {{"--streaming"}, "-i grpc"},
      {{"-l", "10000"}},
      {{"--latency-threshold", "10000"}},
      {{"-t", "2"}},
      {{"-t", "1", "-d", "-c", "2"}},
      {{"-c", "2"}, "--concurrency-range"},
      {{"-z"}},
      {{"--data-directory", "DIR"}},
      // Windows.
      {{"--measurement-interval", "30"}},
      {{"--measurement-mode", "time_windows"}},
      {{"--measurement-mode", "count_windows", "--measurement-request-count", "20"}},
      {{"--stability-percentage", "100000"}},
      {{"--max-trials", "3"}},
      {{"--percentile", "90"}},
      {{"--percentile=85"}},
      // Data.
      {{"-b", "2"}},
      {{"--input-data", "random"}},
      {{"--input-data", "zero"}},
      {{"--input-data", "DIR"}},
      {{"--input-data", "FILE", "--input-data", "FILE"}},
      {{"--shape", "IN:16"}},
      {{"--string-length", "64"}},
      {{"--string-data", "text"}},
      {{"--shared-memory", "none"}},
      {{"--shared-memory", "system", "--output-shared-memory-size", "204800"}},
      {{"--shared-memory", "cuda"}, "none or system"},
      // Sequences.
      {{"--num-of-sequences", "4"}},
      {{"--sequence-length", "20", "--sequence-length-variation", "20"}},
      {{"--sequence-id-range", "1:1000"}},
      // The report.
      {{"-f", "OUT"}},
      {{"-f", "OUT", "--verbose-csv"}},
      {{"-v"}},
      {{"-v", "-v"}},
      // With their effect in perf_metrics_test.cc.
      {{"--metrics-url", "localhost:8002/metrics"}, "--collect-metrics"},
      {{"--metrics-interval", "1000"}, "--collect-metrics"},
      // Others.
      {{"--trace-file", "trace.json"}},
      {{"--trace-level", "OFF"}},
      {{"--trace-level", "TIMESTAMPS", "--trace-level", "TENSORS"}},
      {{"--trace-level", "LOUD"}, "TIMESTAMPS"},
      {{"--trace-rate", "10"}},
      {{"--trace-rate", "0"}, "whole number"},
      {{"--trace-count", "100"}},
      {{"--trace-count", "-1"}},
      {{"--log-frequency", "10"}},
      {{"--enable-mpi"}},
      {{"--bls-composing-models", "simulated:1,simulated"}},
      {{"--bls-composing-models", "a:b"}, "NAME[:VERSION]"},
      // Of later releases.
      {{"--request-count", "50"}},
      {{"--warmup-request-count", "5"}},
      {{"--periodic-concurrency-range", "1:4:1"}, "--request-trace"},
      {{"--request-period", "10"}, "--request-trace"},
      {{"--request-parameter", "max_tokens:16:int", "--request-parameter", "stop:a:b:string"}},
      {{"--profile-export-file", "OUT"}},
      {{"--fixed-schedule"}, "--request-trace"},
      {{"--serial-sequences"}},
      {{"--session-concurrency", "2"}, "--input-data"},
      {{"--input-tensor-format", "binary"}},
      {{"--input-tensor-format", "json"}},
      {{"--input-tensor-format", "JSON", "--shared-memory", "system"}},
      {{"--input-tensor-format", "xml"}, "neither binary nor json"},
      {{"--output-tensor-format", "json"}},
      {{"--output-tensor-format", "xml"}, "neither binary nor json"},
  };
}

struct ShortRun {
  const char* name;
  const char* short_name;
  const char* value;
};
constexpr std::array kShortRun = {ShortRun{"--measurement-interval", "-p", "20"},
                                  ShortRun{"--stability-percentage", "-s", "100000"},
                                  ShortRun{"--max-trials", "-r", "3"}};

class PerfFlagsTest : public PerfTest {
 protected:
  PerfFlagsTest() {
    const std::string data = R"({"data":[{"IN":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}]})";
    std::ofstream(file("data.json")) << data;
    std::ofstream(file("gaps")) << "1000\n3000\n";
    std::filesystem::create_directory(file("data"));
    std::ofstream(file("data") + "/IN", std::ios::binary) << std::string(64, '\0');
  }

  std::vector<std::string> with_files(std::vector<std::string> words) const {
    for (std::string& word : words) {
      word = word == "FILE"   ? file("data.json")
             : word == "DIR"  ? file("data")
             : word == "GAPS" ? file("gaps")
             : word == "OUT"  ? file("perf.csv")
                              : word;
    }
    return words;
  }
};

TEST_F(PerfFlagsTest, EveryOptionIsDoneOrRefusedByNameWithWhatToDo) {
  const test::SimulatedServer server({});

  for (const Words& option : every_option()) {
    const std::string name = option.words.front().substr(0, option.words.front().find('='));
    std::vector<std::string> words = with_files(option.words);
    words.insert(words.end(), {"-u", server.endpoint().text()});
    // A short run, unless the option is about its length.
    for (const auto& [word, short_name, value] : kShortRun) {
      if (name != word) {
        words.insert(words.end(), {short_name, value});
      }
    }

    const int code = run(words);

    if (option.refused.empty()) {
      EXPECT_EQ(code, 0) << name << ": " << output_;
      EXPECT_THAT(output_, HasSubstr(", throughput: ")) << name;
    } else {
      EXPECT_EQ(code, 2) << name << ": " << output_;
      EXPECT_THAT(output_, HasSubstr(name)) << name;
      EXPECT_THAT(output_, HasSubstr(option.refused)) << name;
    }
  }
}

TEST_F(PerfFlagsTest, SeveralServersShareTheLoad) {
  const test::SimulatedServer one({});
  const test::SimulatedServer other({});

  const int code = run({"-u", one.endpoint().text(), "-u", "http://" + other.endpoint().text(),
                        "--concurrency-range", "2", "--request-count", "100"});

  EXPECT_EQ(code, 0) << output_;
  EXPECT_GT(one.requests(), 0U);
  EXPECT_GT(other.requests(), 0U);
}

TEST_F(PerfFlagsTest, HeadersAndParametersReachTheServer) {
  const test::SimulatedServer server({});

  const int code = run({"-u", server.endpoint().text(), "-H", "X-Team:blue", "--request-parameter",
                        "max_tokens:16:int", "--request-count", "5"});

  EXPECT_EQ(code, 0) << output_;
  EXPECT_THAT(server.last_request(), HasSubstr("X-Team: blue"));
  EXPECT_THAT(server.last_request(), HasSubstr(R"("max_tokens":16)"));
}

TEST_F(PerfFlagsTest, ARequestCountMeasuresSoManyRequestsAfterTheWarmUp) {
  const test::SimulatedServer server({});

  const int code = run({"-u", server.endpoint().text(), "--request-count", "200",
                        "--warmup-request-count", "100", "-f", file("perf.csv")});

  EXPECT_EQ(code, 0) << output_;
  EXPECT_THAT(output_, HasSubstr("Request count: 200\n"));
  EXPECT_GE(server.requests(), 300U);
}

}  // namespace
}  // namespace septet
