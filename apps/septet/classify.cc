// septet classify: shows pictures to a model and prints what it sees.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "measure/edge/grpc_exchange.h"
#include "measure/edge/grpc_query.h"
#include "measure/edge/infer_exchange.h"
#include "measure/edge/model_query.h"
#include "measure/edge/picture_file.h"
#include "measure/image_client.h"
#include "os/endpoint.h"
#include "output.h"
#include "verb.h"

namespace septet::app {
namespace {

namespace fs = std::filesystem;

constexpr std::uint16_t kHttpPort = 8000;
constexpr std::uint16_t kGrpcPort = 8001;

struct ClassifyOptions {
  std::string source;  // a picture or a folder
  std::string model;
  std::string version;
  std::string url;  // empty = this machine, the protocol's port
  std::string protocol = "http";
  int batch_size = 1;
  std::uint32_t classes = 1;
  measure::Scaling scaling = measure::Scaling::kNone;
  bool all_at_once = false;
  bool streaming = false;
  bool verbose = false;
  std::vector<std::string> headers;
  std::string preprocessed;  // where to write the first picture's bytes
};

// The pictures to show: the file, or every entry of the folder in order of name.
Result<std::vector<std::string>> picture_names(const std::string& source) {
  std::error_code error;
  if (!fs::is_directory(source, error)) {
    return std::vector<std::string>{source};
  }
  std::vector<std::string> names;
  for (fs::directory_iterator entry(source, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().string());
  }
  if (error || names.empty()) {
    return make_error(ErrorKind::kNotFound, fmt::format("there are no pictures in {}{}", source,
                                                        error ? ": " + error.message() : ""));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "NAME:VALUE", split at the first colon.
Result<measure::HeaderFields> header_fields(const std::vector<std::string>& texts) {
  measure::HeaderFields fields;
  for (const std::string& text : texts) {
    const std::size_t colon = text.find(':');
    if (colon == 0 || colon == std::string::npos) {
      return make_error(ErrorKind::kUsage, fmt::format("'{}' is no header", text),
                        "write -H NAME:VALUE");
    }
    fields.emplace_back(text.substr(0, colon), text.substr(colon + 1));
  }
  return fields;
}

Result<Ok> write_bytes(const std::string& path, const std::vector<std::byte>& bytes) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"),
                                                             std::fclose);
  if (!file || std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) {
    return make_error(ErrorKind::kFailed,
                      fmt::format("the bytes could not be written to {}", path));
  }
  return Ok{};
}

// Decodes and preprocesses pictures when their request leaves, so that a large folder fits.
class PictureSource {
 public:
  PictureSource(const ClassifyOptions& options, measure::ImageModel model,
                std::vector<std::string> names)
      : options_(options), model_(std::move(model)), names_(std::move(names)) {
    requests_ = measure::plan_requests(names_.size(), static_cast<std::size_t>(options.batch_size));
  }

  std::size_t requests() const { return requests_.size(); }

  std::vector<std::string> names_in(std::size_t request) const {
    std::vector<std::string> names;
    for (const std::size_t picture : requests_[request]) {
      names.push_back(names_[picture]);
    }
    return names;
  }

  Result<inference::InferRequest> make_request(std::size_t number) const {
    std::vector<inference::Blob> blobs;
    for (const std::size_t picture : requests_[number]) {
      Result<std::vector<std::byte>> bytes = preprocessed(picture);
      if (!bytes) {
        return bytes.error();
      }
      if (number == 0 && blobs.empty() && !options_.preprocessed.empty()) {
        SEPTET_TRY(write_bytes(options_.preprocessed, *bytes));
      }
      blobs.push_back(inference::own_bytes(std::move(*bytes)));
    }
    return measure::classification_request(model_, number, blobs, options_.classes);
  }

 private:
  Result<std::vector<std::byte>> preprocessed(std::size_t picture) const {
    const Result<measure::Picture> decoded = measure::read_picture(names_[picture]);
    if (!decoded) {
      return decoded.error();
    }
    return measure::preprocess(*decoded, model_.input, options_.scaling);
  }

  const ClassifyOptions& options_;
  measure::ImageModel model_;
  std::vector<std::string> names_;
  std::vector<std::vector<std::size_t>> requests_;
};

std::string server_of(const ClassifyOptions& options) {
  if (!options.url.empty()) {
    return options.url;
  }
  return fmt::format("localhost:{}", options.protocol == "grpc" ? kGrpcPort : kHttpPort);
}

Result<Ok> check_protocol(const ClassifyOptions& options) {
  const bool by_grpc = options.protocol == "grpc";
  if (options.streaming && !(by_grpc && options.all_at_once)) {
    return make_error(ErrorKind::kUsage, "streaming is only allowed with gRPC and -a",
                      "add -i grpc -a");
  }
  if (by_grpc && !options.headers.empty()) {
    fmt::print(stderr, "septet: headers are sent over HTTP only; -H is ignored\n");
  }
  return Ok{};
}

Result<Ok> classify(const ClassifyOptions& options) {
  SEPTET_TRY(check_protocol(options));
  const bool by_grpc = options.protocol == "grpc";
  const Result<os::Endpoint> endpoint =
      os::parse_endpoint(server_of(options), by_grpc ? kGrpcPort : kHttpPort);
  if (!endpoint) {
    return endpoint.error();
  }
  const Result<measure::HeaderFields> headers = header_fields(options.headers);
  if (!headers) {
    return headers.error();
  }
  const Result<std::vector<std::string>> names = picture_names(options.source);
  if (!names) {
    return names.error();
  }
  const Result<measure::ModelDescription> description =
      by_grpc ? measure::query_model_grpc({*endpoint}, options.model, options.version)
              : measure::query_model({*endpoint, *headers}, options.model, options.version);
  if (!description) {
    return description.error();
  }
  Result<measure::ImageModel> model = measure::image_model(*description, options.batch_size);
  if (!model) {
    return model.error();
  }
  model->version = options.version;
  if (options.verbose) {
    fmt::print(stderr, "{}: input {} {} {} x {} x {} {}, output {}, {} picture(s)\n", model->name,
               model->input_name, wire_name(model->input.datatype), model->input.width,
               model->input.height, model->input.channels,
               model->input.layout == measure::PixelLayout::kNchw ? "NCHW" : "NHWC",
               model->output_name, names->size());
  }
  const std::string output_name = model->output_name;
  const PictureSource source(options, std::move(*model), *names);
  measure::InferExchange exchange;
  exchange.endpoint = *endpoint;
  exchange.headers = *headers;
  exchange.requests = source.requests();
  exchange.sending =
      options.all_at_once ? measure::Sending::kTogether : measure::Sending::kOneByOne;
  exchange.make_request = [&source](std::size_t number) { return source.make_request(number); };
  exchange.on_response = [&](std::size_t arrival, std::size_t number,
                             const inference::InferResponse& response) -> Result<Ok> {
    const Result<std::string> text =
        measure::classification_text(response, output_name, source.names_in(number));
    if (!text) {
      return text.error();
    }
    fmt::print("Request {}, batch size {}\n{}", arrival, options.batch_size, *text);
    return Ok{};
  };
  if (by_grpc) {
    return measure::run_grpc_exchange(
        exchange, options.streaming ? measure::GrpcCalls::kStream : measure::GrpcCalls::kUnary);
  }
  return measure::run_infer_exchange(exchange);
}

// Says how to start a server where none answers.
Error with_advice(Error error, const ClassifyOptions& options) {
  if (error.kind == ErrorKind::kPrecondition) {
    error.hint = fmt::format(
        "start one with: septet serve --model-repository models --listen {}; or name another with "
        "-u",
        server_of(options));
  }
  return error;
}

void add_options(CLI::App& verb, ClassifyOptions& options) {
  const std::map<std::string, measure::Scaling> scalings = {
      {"NONE", measure::Scaling::kNone},
      {"INCEPTION", measure::Scaling::kInception},
      {"VGG", measure::Scaling::kVgg}};
  verb.add_option("source", options.source, "A picture (JPEG, PNG, BMP, PNM) or a folder of them")
      ->required()
      ->type_name("IMAGE|DIR");
  verb.add_option("-m,--model-name", options.model, "The model")->required();
  verb.add_option("-x,--model-version", options.version,
                  "Its version; the server chooses if absent");
  verb.add_option("-u,--url", options.url,
                  "The server, HOST:PORT or unix:/path (localhost:8000, with gRPC 8001)");
  verb.add_option("-i,--protocol", options.protocol, "http or grpc")
      ->transform(CLI::IsMember({"http", "grpc"}, CLI::ignore_case))
      ->capture_default_str();
  verb.add_option("-b,--batch-size", options.batch_size, "Pictures a request")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb.add_option("-c,--classes", options.classes, "How many classes to show")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb.add_option("-s,--scaling", options.scaling, "NONE, INCEPTION or VGG")
      ->transform(CLI::CheckedTransformer(scalings, CLI::ignore_case))
      ->type_name("SCALING");
  verb.add_flag("-a,--async", options.all_at_once, "Send without waiting for answers");
  verb.add_flag("--streaming", options.streaming, "One gRPC stream for all requests; needs -a");
  verb.add_flag("-v,--verbose", options.verbose, "Say more");
  verb.add_option("-H", options.headers, "An extra HTTP header")->type_name("NAME:VALUE");
  verb.add_option("-p,--preprocessed", options.preprocessed,
                  "Write the first picture's preprocessed bytes to this file")
      ->type_name("FILE");
}

}  // namespace

void add_classify(CLI::App& app, const Globals& globals, Action& action) {
  const auto options = std::make_shared<ClassifyOptions>();
  CLI::App* verb = app.add_subcommand("classify", "Show pictures to a model and print its answers");
  add_options(*verb, *options);
  verb->callback([options, &globals, &action] {
    action = [options, &globals] {
      const Result<Ok> done = classify(*options);
      return done ? 0 : fail(with_advice(done.error(), *options), globals.output);
    };
  });
}

}  // namespace septet::app
