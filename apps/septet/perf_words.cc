#include "perf_words.h"

#include "measure/perf_old_options.h"

namespace septet::app {
namespace {

void add_load_options(CLI::App& verb, measure::PerfArguments& words) {
  verb.add_option("-m,--model-name", words.model, "Model to measure")->required();
  verb.add_option("-x,--model-version", words.version, "Version of the model");
  verb.add_option("-u,--url", words.urls,
                  "Server: HOST:PORT, https://HOST:PORT or unix:/path; may be repeated")
      ->allow_extra_args(false)
      ->type_name("URL");
  verb.add_option("-i,--protocol", words.protocol, "http or grpc")->capture_default_str();
  verb.add_option("--grpc-compression-algorithm", words.grpc_compression,
                  "none, gzip or deflate, of the requests")
      ->capture_default_str();
  verb.add_option("--request-parameter", words.request_parameters,
                  "NAME:VALUE:TYPE, a parameter for the model; may be repeated")
      ->allow_extra_args(false);
  verb.add_option("-H", words.headers, "NAME:VALUE, a header for every request; may be repeated")
      ->allow_extra_args(false);
  verb.add_option("--concurrency-range", words.concurrency_range,
                  "START[:END[:STEP]] requests in flight; END 0 grows until -l is exceeded");
  verb.add_option("--request-rate-range", words.request_rate_range,
                  "START[:END[:STEP]] requests per second, whatever the server does");
  verb.add_option("--request-distribution", words.request_distribution, "constant or poisson")
      ->capture_default_str();
  verb.add_option("--request-intervals", words.request_intervals,
                  "File of gaps between requests in microseconds, one a line");
  verb.add_option("--request-trace", words.request_trace,
                  "File of arrival times (Azure's LLM traces, .gz too), replayed once");
  verb.add_option("--trace-speed", words.trace_speed, "Replay so many times faster")
      ->capture_default_str();
  verb.add_flag("--binary-search", words.binary_search,
                "Search the range for the highest level within -l");
  verb.add_option("-l,--latency-threshold", words.latency_threshold_ms, "Milliseconds; 0 = none");
  verb.add_flag("-a,--async", words.async, "As perf_analyzer's; the load is the same here");
  verb.add_flag("--sync", words.sync, "As perf_analyzer's; the load is the same here");
  verb.add_flag("--streaming", words.streaming, "gRPC streams");
}

void add_tls_options(CLI::App& verb, measure::TlsWords& words) {
  verb.add_flag("--ssl-grpc-use-ssl", words.grpc_use_ssl, "Encrypt gRPC");
  verb.add_option("--ssl-grpc-root-certifications-file", words.grpc_root_certifications_file,
                  "PEM file of authorities; this machine's if absent");
  verb.add_option("--ssl-grpc-private-key-file", words.grpc_private_key_file,
                  "PEM file: the client's key");
  verb.add_option("--ssl-grpc-certificate-chain-file", words.grpc_certificate_chain_file,
                  "PEM file: the client's certificate");
  verb.add_option("--ssl-https-verify-peer", words.https_verify_peer,
                  "0 accepts a certificate of any authority (1)");
  verb.add_option("--ssl-https-verify-host", words.https_verify_host,
                  "0 accepts a certificate for any host (2)");
  verb.add_option("--ssl-https-ca-certificates-file", words.https_ca_certificates_file,
                  "PEM file of authorities; this machine's if absent");
  verb.add_option("--ssl-https-client-certificate-file", words.https_client_certificate_file,
                  "The client's certificate");
  verb.add_option("--ssl-https-client-certificate-type", words.https_client_certificate_type,
                  "PEM (default) or DER");
  verb.add_option("--ssl-https-private-key-file", words.https_private_key_file,
                  "The client's key; sought in the certificate's file if absent");
  verb.add_option("--ssl-https-private-key-type", words.https_private_key_type,
                  "PEM (default) or DER");
}

void add_measuring_options(CLI::App& verb, PerfWords& words) {
  measure::PerfArguments& arguments = words.arguments;
  verb.add_option("-p,--measurement-interval", arguments.measurement_interval_ms,
                  "Length of a window in milliseconds (5000)");
  verb.add_option("--measurement-mode", arguments.measurement_mode, "time_windows or count_windows")
      ->capture_default_str();
  verb.add_option("--measurement-request-count", arguments.measurement_request_count,
                  "Requests in a count window (50)");
  verb.add_option("--request-count", arguments.request_count,
                  "Measure so many requests, in one window; 0 = by time");
  verb.add_option("--warmup-request-count", arguments.warm_up_request_count,
                  "Requests before a level is measured");
  verb.add_option("-s,--stability-percentage", arguments.stability_percentage,
                  "How much three windows may differ (10)");
  verb.add_option("-r,--max-trials", arguments.max_trials, "Windows at most for a level (10)");
  verb.add_flag("--adaptive", arguments.adaptive,
                "Short windows until 95% confidence within -s percent (5); the default unless an "
                "option about windows is given");
  verb.add_flag("--no-adaptive", arguments.no_adaptive, "perf_analyzer's three windows");
  verb.add_option("--percentile", arguments.percentile,
                  "Judge by this latency percentile; -1 = by the average")
      ->capture_default_str();
  verb.add_option("-b,--batch-size", arguments.batch_size, "Batch size")->capture_default_str();
  verb.add_option("--input-data", arguments.input_data,
                  "random, zero, a directory, or JSON files (repeated)")
      ->allow_extra_args(false);
  verb.add_option("--shape", arguments.shapes, "NAME:1,2,3 for an input with variable dimensions")
      ->allow_extra_args(false);
  verb.add_option("--string-length", arguments.string_length, "Length of made-up strings")
      ->capture_default_str();
  verb.add_option("--string-data", arguments.string_data, "Content of every string");
  verb.add_option("--seed", words.seed, "Seed of random data and Poisson schedules")
      ->capture_default_str();
}

void add_sequence_options(CLI::App& verb, PerfWords& words) {
  measure::PerfArguments& arguments = words.arguments;
  verb.add_option("--shared-memory", arguments.shared_memory, "none or system")
      ->capture_default_str();
  verb.add_option("--output-shared-memory-size", words.output_shared_memory_bytes,
                  "Bytes for an output without a fixed size")
      ->capture_default_str();
  verb.add_option("--input-tensor-format", arguments.input_tensor_format,
                  "binary or json, of the inputs (HTTP)")
      ->capture_default_str();
  verb.add_option("--output-tensor-format", arguments.output_tensor_format,
                  "binary or json, asked for of the outputs (HTTP)")
      ->capture_default_str();
  verb.add_option("--num-of-sequences", arguments.live_sequences,
                  "Sequences alive at a request rate")
      ->capture_default_str();
  verb.add_option("--sequence-length", arguments.sequence_length, "Requests of a sequence")
      ->capture_default_str();
  verb.add_option("--sequence-length-variation", arguments.sequence_length_variation, "Percent")
      ->capture_default_str();
  verb.add_option("--sequence-id-range", arguments.sequence_id_range, "START[:END]");
  verb.add_option("--max-threads", words.max_threads,
                  "As perf_analyzer's; one thread carries the load here");
}

void add_part_options(CLI::App& verb, measure::PerfArguments& words) {
  verb.add_option("--bls-composing-models", words.called_models,
                  "NAME[:VERSION],... that the model calls: their statistics are shown too");
}

void add_output_options(CLI::App& verb, PerfOutput& output) {
  verb.add_option("-f", output.csv_file,
                  "CSV file; everything that was measured goes to FILE.jsonl beside it")
      ->type_name("FILE");
  verb.add_option("--profile-export-file", output.profile_file,
                  "JSON file: when every request left and was answered")
      ->type_name("FILE");
  verb.add_flag("--verbose-csv", output.verbose_csv, "More columns in the CSV file");
  verb.add_flag("-v,--verbose", output.verbose, "Show every window");
}

void add_metrics_options(CLI::App& verb, measure::PerfArguments& words) {
  verb.add_flag("--collect-metrics", words.collect_metrics,
                "Read GPU utilization, power and memory from the server's Prometheus page");
  verb.add_option("--metrics-url", words.metrics_url, "The page (the server's HOST:8002/metrics)");
  verb.add_option("--metrics-interval", words.metrics_interval_ms,
                  "Milliseconds between readings (1000)");
}

void add_trace_options(CLI::App& verb, measure::TraceRequest& trace) {
  verb.add_option("--trace-level", trace.levels,
                  "OFF, TIMESTAMPS or TENSORS, told to the server before the run; may be repeated")
      ->allow_extra_args(false);
  verb.add_option("--trace-file", trace.file, "Where the server writes its traces");
  verb.add_option("--trace-rate", trace.rate, "Trace one request of so many");
  verb.add_option("--trace-count", trace.count, "Traces at most; -1 = without an end");
  verb.add_option("--log-frequency", trace.log_frequency,
                  "So many traces into each file; 0 = all into one");
}

// Words that change nothing here, for the scripts that have them.
void add_idle_options(CLI::App& verb, PerfWords& words) {
  verb.add_flag("--enable-mpi", words.enable_mpi,
                "As perf_analyzer's without mpirun: this process measures alone");
  verb.add_flag("--serial-sequences", words.serial_sequences,
                "As perf_analyzer's; a sequence has one request in flight in any case");
}

// Words of older scripts; help shows today's.
void add_old_options(CLI::App& verb, measure::PerfArguments& words) {
  constexpr const char* kHidden = "";
  verb.add_option("-t", words.old_concurrency)->group(kHidden);
  verb.add_option("-c", words.old_max_concurrency)->group(kHidden);
  verb.add_flag("-d", words.dynamic_concurrency)->group(kHidden);
  verb.add_flag("-z", words.zero_input)->group(kHidden);
  verb.add_option("--data-directory", words.data_directory)->group(kHidden);
}

void add_refused_options(CLI::App& verb, PerfWords& words) {
  for (const measure::RefusedOption& option : measure::refused_options()) {
    const auto note = [&words, name = std::string(option.name)](const std::string& value) {
      words.refused[name] = value;
    };
    CLI::Option* added = option.takes_value
                             ? verb.add_option_function<std::string>(option.name, note)
                             : verb.add_flag_callback(option.name, [note] { note({}); });
    added->group("");
  }
}

}  // namespace

void add_perf_words(CLI::App& verb, PerfWords& words) {
  add_load_options(verb, words.arguments);
  add_tls_options(verb, words.arguments.tls);
  add_measuring_options(verb, words);
  add_sequence_options(verb, words);
  add_output_options(verb, words.output);
  add_metrics_options(verb, words.arguments);
  add_part_options(verb, words.arguments);
  add_trace_options(verb, words.arguments.trace);
  add_idle_options(verb, words);
  add_old_options(verb, words.arguments);
  add_refused_options(verb, words);
}

Result<Ok> check_refused_words(const PerfWords& words) {
  for (const measure::RefusedOption& option : measure::refused_options()) {
    if (const auto given = words.refused.find(option.name); given != words.refused.end()) {
      SEPTET_TRY(measure::refuse(option, given->second));
    }
  }
  return Ok{};
}

}  // namespace septet::app
