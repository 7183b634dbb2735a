#include "measure/edge/shared_regions.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "inference/json_writer.h"
#include "measure/edge/grpc_query.h"
#include "os/unique_fd.h"

namespace septet::measure {

namespace {

std::uint64_t output_size(const TensorDescription& output, std::int64_t batch_size,
                          std::uint64_t otherwise) {
  const auto bytes = inference::byte_size(output.datatype, output.shape);
  return bytes ? *bytes * static_cast<std::uint64_t>(batch_size) : otherwise;
}

}  // namespace

SharedRegions::SharedRegions(Settings settings) : settings_(std::move(settings)) {}

SharedRegions::~SharedRegions() {
  constexpr Duration kPatience = seconds(2);
  for (const std::string& region : regions_) {
    for (const ServerAccess& server : settings_.servers) {
      // A server that has gone has forgotten the region too.
      if (settings_.grpc) {
        [[maybe_unused]] const auto reply =
            unregister_shared_memory_grpc(server, region, kPatience);
      } else {
        [[maybe_unused]] const auto reply =
            http_exchange(server, "POST", "/v2/systemsharedmemory/region/" + region + "/unregister",
                          {}, kPatience);
      }
    }
  }
  for (const std::string& key : keys_) {
    ::shm_unlink(key.c_str());
  }
}

Result<Ok> SharedRegions::ask_to_register(const ServerAccess& server, const std::string& region,
                                          const std::string& key, std::uint64_t bytes) const {
  if (settings_.grpc) {
    return register_shared_memory_grpc(server, region, key, bytes);
  }
  inference::JsonWriter json;
  json.begin_object().key("key").value(key);
  json.key("offset").value(0).key("byte_size").value(bytes).end_object();
  const Result<HttpReply> reply = http_exchange(
      server, "POST", "/v2/systemsharedmemory/region/" + region + "/register", json.text());
  if (!reply.ok()) {
    return reply.error();
  }
  return reply->status == 200
             ? Result<Ok>(Ok{})
             : make_error(ErrorKind::kFailed,
                          fmt::format("{} refused shared memory region '{}': {}",
                                      server.endpoint.text(), region, error_text(reply->body)));
}

Result<Ok> SharedRegions::register_region(const std::string& region, const std::string& key,
                                          std::uint64_t bytes) {
  for (const ServerAccess& server : settings_.servers) {
    if (const Result<Ok> asked = ask_to_register(server, region, key, bytes); !asked.ok()) {
      return make_error(asked.error().kind, asked.error().message,
                        asked.error().kind == ErrorKind::kPrecondition
                            ? asked.error().hint
                            : "leave --shared-memory out, or use a server that offers it");
    }
  }
  return Ok{};
}

Result<inference::SharedMemoryRange> SharedRegions::add(const std::string& name,
                                                        std::span<const std::byte> content,
                                                        std::uint64_t bytes) {
  const std::string region = fmt::format("septet_{}_{}", ::getpid(), name);
  const std::string key = "/" + region;
  const auto failed = [&](const char* action) {
    return make_error(ErrorKind::kFailed, fmt::format("cannot {} shared memory {}: {}", action, key,
                                                      std::strerror(errno)));
  };
  const os::UniqueFd fd(::shm_open(key.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600));
  if (!fd.valid()) {
    return failed("create");
  }
  keys_.push_back(key);
  // Allocated, not only sized: a full memory file system must fail here and not kill by SIGBUS.
  if (const int error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)); error != 0) {
    errno = error;
    return failed("allocate");
  }
  if (!content.empty()) {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (memory == MAP_FAILED) {
      return failed("map");
    }
    std::memcpy(memory, content.data(), content.size());
    ::munmap(memory, bytes);
  }
  SEPTET_TRY(register_region(region, key, bytes));
  regions_.push_back(region);
  return inference::SharedMemoryRange{region, 0, bytes};
}

Result<std::unique_ptr<SharedRegions>> SharedRegions::create(RequestStreams& streams,
                                                             const ModelDescription& model,
                                                             Settings settings) {
  const std::uint64_t output_bytes = settings.output_bytes;
  std::unique_ptr<SharedRegions> regions(new SharedRegions(std::move(settings)));
  std::vector<inference::SharedMemoryRange> outputs;
  const inference::InferRequest& first = streams.front().front();
  const std::int64_t batch_size = model.max_batch_size > 0 ? first.inputs.front().shape.front() : 1;
  for (const TensorDescription& output : model.outputs) {
    Result<inference::SharedMemoryRange> range =
        regions->add(output.name, {}, output_size(output, batch_size, output_bytes));
    if (!range.ok()) {
      return range.error();
    }
    outputs.push_back(*std::move(range));
  }
  for (std::size_t s = 0; s < streams.size(); ++s) {
    for (std::size_t i = 0; i < streams[s].size(); ++i) {
      inference::InferRequest& request = streams[s][i];
      for (inference::InputTensor& input : request.inputs) {
        Result<inference::SharedMemoryRange> range = regions->add(
            fmt::format("{}_{}_{}", input.name, s, i), input.data.bytes, input.data.size());
        if (!range.ok()) {
          return range.error();
        }
        input.shared = *std::move(range);
        input.data = {};
      }
      for (std::size_t o = 0; o < request.outputs.size(); ++o) {
        request.outputs[o].shared = outputs[o];
      }
    }
  }
  return regions;
}

}  // namespace septet::measure
