#include "serve/edge/response_cache.h"

#include <openssl/evp.h>

#include <memory>

#include "base/check.h"

namespace septet::serve {

using inference::InferRequest;
using inference::InferResponse;

namespace {

// What an entry takes beside its tensors, roughly.
constexpr std::size_t kOverheadBytes = 512;

class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    CHECK(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }
  // The length goes first, so that no two lists of texts look the same.
  void add(const void* data, std::size_t size) {
    CHECK(EVP_DigestUpdate(context_.get(), &size, sizeof size) == 1);
    CHECK(EVP_DigestUpdate(context_.get(), data, size) == 1);
  }
  void add(std::string_view text) { add(text.data(), text.size()); }
  ResponseCache::Key finish() {
    ResponseCache::Key key{};
    CHECK(EVP_DigestFinal_ex(context_.get(), key.data(), nullptr) == 1);
    return key;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

}  // namespace

ResponseCache::Key ResponseCache::key_of(const InferRequest& request, const std::string& version) {
  Digest digest;
  digest.add(request.model_name);
  digest.add(version);
  for (const inference::InputTensor& input : request.inputs) {
    digest.add(input.name);
    digest.add(wire_name(input.datatype));
    digest.add(input.shape.data(), input.shape.size() * sizeof(std::int64_t));
    digest.add(input.data.bytes.data(), input.data.size());
  }
  digest.add(request.binary_outputs ? "binary" : "json");
  for (const inference::RequestedOutput& output : request.outputs) {
    digest.add(output.name);
    digest.add(output.binary ? "binary" : "json");
    digest.add(&output.classification, sizeof output.classification);
  }
  return digest.finish();
}

std::optional<InferResponse> ResponseCache::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    return std::nullopt;
  }
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->response;
}

void ResponseCache::insert(const Key& key, const InferResponse& response) {
  std::size_t bytes = kOverheadBytes;
  for (const inference::OutputTensor& output : response.outputs) {
    bytes += output.data.size();
  }
  const std::lock_guard lock(mutex_);
  if (bytes > limit_bytes_ || by_key_.contains(key)) {
    return;
  }
  while (bytes_ + bytes > limit_bytes_) {
    bytes_ -= entries_.back().bytes;
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
  entries_.push_front({key, response, bytes});
  by_key_[key] = entries_.begin();
  bytes_ += bytes;
}

}  // namespace septet::serve
