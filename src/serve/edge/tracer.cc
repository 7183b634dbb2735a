#include "serve/edge/tracer.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "os/clock.h"

namespace septet::serve {

namespace {

// So much is kept before it is written, whatever the settings say.
constexpr std::size_t kMostPendingBytes = std::size_t{64} << 10;
constexpr std::size_t kMostNumberedBytes = std::size_t{16} << 20;

}  // namespace

RequestTrace::~RequestTrace() { tracer_->collect(settings_of_, record_); }

std::shared_ptr<const void> RequestTrace::mark_when_gone(std::shared_ptr<RequestTrace> trace,
                                                         std::string_view name) {
  return {nullptr, [trace = std::move(trace), name](const void*) { trace->mark(name, os::now()); }};
}

void RequestTrace::describe(const std::string& model, std::int64_t version,
                            const std::string& request_id) {
  record_.model_name = model;
  record_.model_version = version;
  record_.request_id = request_id;
}

std::shared_ptr<RequestTrace> RequestTrace::child() const {
  return std::make_shared<RequestTrace>(
      tracer_, settings_of_, TraceRecord{.id = tracer_->next_id(), .parent_id = record_.id});
}

Tracer::Tracer(const TraceStart& start, std::function<void(const Error&)> on_error)
    : file_(start.file), on_error_(std::move(on_error)), settings_(start.setting) {
  is_on_ = settings_.is_on();
}

void Tracer::close() {
  const std::lock_guard lock(mutex_);
  write_pending();
  closed_ = true;
}

TraceSetting Tracer::setting_of(const std::string& model) const {
  const std::lock_guard lock(mutex_);
  return settings_.of(model);
}

void Tracer::change(const std::string& model, const TraceChange& change) {
  const std::lock_guard lock(mutex_);
  write_pending();
  settings_.change(model, change);
  is_on_ = settings_.is_on();
}

std::shared_ptr<RequestTrace> Tracer::begin(const std::string& model) {
  if (!is_on_) {
    return nullptr;
  }
  {
    const std::lock_guard lock(mutex_);
    if (!settings_.sample(model)) {
      return nullptr;
    }
  }
  return std::make_shared<RequestTrace>(shared_from_this(), model,
                                        TraceRecord{.id = next_id(), .model_name = model});
}

void Tracer::collect(const std::string& settings_of, const TraceRecord& record) {
  const std::string elements = to_json(record);
  const std::lock_guard lock(mutex_);
  if (closed_) {
    return;
  }
  const TraceSetting setting = settings_.of(settings_of);
  Pending& pending = setting.log_frequency == 0 ? for_file_ : for_numbered_;
  pending.elements += pending.traces == 0 ? "" : ",\n";
  pending.elements += elements;
  ++pending.traces;
  if (setting.log_frequency == 0) {
    // Nothing more may come to push the last ones out.
    if (setting.count == 0 || for_file_.elements.size() >= kMostPendingBytes) {
      append_to_file();
    }
  } else if (for_numbered_.traces >= setting.log_frequency ||
             for_numbered_.elements.size() >= kMostNumberedBytes) {
    write_numbered_file();
  }
}

void Tracer::write_pending() {
  append_to_file();
  write_numbered_file();
}

// Puts the new elements over the bracket that closes the array.
void Tracer::append_to_file() {
  if (for_file_.traces == 0) {
    return;
  }
  const bool first = file_bytes_ == 0;
  const auto mode = std::ios::binary | std::ios::out | (first ? std::ios::trunc : std::ios::in);
  std::fstream file(file_, mode);
  file.seekp(first ? 0 : static_cast<std::streamoff>(file_bytes_ - 1));
  const std::string text = (first ? "[" : ",\n") + for_file_.elements + "]";
  file << text << std::flush;
  if (file.good()) {
    file_bytes_ += text.size() - (first ? 0 : 1);
  } else {
    report(file_);
  }
  for_file_ = {};
}

void Tracer::write_numbered_file() {
  if (for_numbered_.traces == 0) {
    return;
  }
  const std::string path = fmt::format("{}.{}", file_, next_number_++);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << '[' << for_numbered_.elements << ']' << std::flush;
  if (!file.good()) {
    report(path);
  }
  for_numbered_ = {};
}

void Tracer::report(const std::string& path) {
  if (!reported_) {
    reported_ = true;
    on_error_(make_error(ErrorKind::kFailed,
                         fmt::format("cannot write traces to {}: {}", path, std::strerror(errno)),
                         "the folder must exist and be writable; see --trace-config"));
  }
}

}  // namespace septet::serve
