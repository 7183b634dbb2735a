#include "measure/edge/picture_file.h"

#include <fmt/format.h>
// After <cstdio>, whose FILE it needs.
#include <jpeglib.h>

#include <array>
#include <csetjmp>
#include <cstdio>
#include <memory>
#include <optional>

#include "os/durable_file.h"

// Only the formats that the client promises; a static copy, so that no other one is met.
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_PNM
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#include <stb/stb_image.h>

namespace septet::measure {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{256} << 20;
constexpr int kMostSide = 32'768;  // pixels
constexpr std::int64_t kMostPixels = 1 << 28;

Error undecodable(const std::string& name, const std::string& why) {
  return make_error(ErrorKind::kFailed, fmt::format("unable to decode image {} ({})", name, why),
                    "JPEG, PNG, BMP and binary PNM are understood");
}

bool size_is_sane(std::int64_t width, std::int64_t height) {
  return width > 0 && height > 0 && width <= kMostSide && height <= kMostSide &&
         width * height <= kMostPixels;
}

const unsigned char* as_unsigned(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());  // NOLINT: libraries want it so
}

// Reads numbers of an EXIF block, which says itself in which order its bytes are.
class ExifReader {
 public:
  explicit ExifReader(std::string_view tiff) : tiff_(tiff) {}

  // The value of tag 0x0112 in the first directory; 1 where there is none.
  int orientation() {
    little_ = tiff_.substr(0, 2) == "II";
    if ((!little_ && tiff_.substr(0, 2) != "MM") || number(2, 2) != 42) {
      return 1;
    }
    const std::size_t directory = number(4, 4);
    const std::size_t entries = number(directory, 2);
    for (std::size_t i = 0; i < entries; ++i) {
      const std::size_t entry = directory + 2 + 12 * i;
      if (entry + 12 > tiff_.size()) {
        return 1;
      }
      if (number(entry, 2) == 0x0112) {
        const std::size_t value = number(entry + 8, 2);
        return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
      }
    }
    return 1;
  }

 private:
  // The number in these bytes; 0 outside the block.
  std::size_t number(std::size_t at, std::size_t bytes) const {
    if (at > tiff_.size() || bytes > tiff_.size() - at) {
      return 0;
    }
    std::size_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      const std::size_t place = little_ ? bytes - 1 - i : i;
      value = value << 8U | static_cast<unsigned char>(tiff_[at + place]);
    }
    return value;
  }

  std::string_view tiff_;
  bool little_ = false;
};

// libjpeg's errors come back as a message instead of ending the program.
struct JpegErrors {
  jpeg_error_mgr manager{};
  std::jmp_buf back{};
  std::array<char, JMSG_LENGTH_MAX> message{};
};

void leave_jpeg(j_common_ptr common) {
  // The manager is the first member, so its address is the whole's.
  auto* errors = reinterpret_cast<JpegErrors*>(common->err);  // NOLINT: libjpeg's own pattern
  common->err->format_message(common, errors->message.data());
  std::longjmp(errors->back, 1);  // NOLINT: libjpeg knows no other way
}

void stay_silent(j_common_ptr /*common*/) {}

int orientation_of(const jpeg_decompress_struct& jpeg) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  for (const jpeg_marker_struct* marker = jpeg.marker_list; marker != nullptr;
       marker = marker->next) {
    const std::string_view data(reinterpret_cast<const char*>(marker->data),  // NOLINT
                                marker->data_length);
    if (marker->marker == JPEG_APP0 + 1 && data.starts_with(kExif)) {
      return ExifReader(data.substr(kExif.size())).orientation();
    }
  }
  return 1;
}

// As OpenCV: c is what the (inverted) file says, k scales it.
void cmyk_to_rgb(const std::vector<std::uint8_t>& row, std::uint8_t* rgb) {
  for (std::size_t pixel = 0; pixel * 4 < row.size(); ++pixel) {
    const int black = row[pixel * 4 + 3];
    for (std::size_t c = 0; c < 3; ++c) {
      const int value = black - (((255 - row[pixel * 4 + c]) * black) >> 8);
      rgb[pixel * 3 + c] = static_cast<std::uint8_t>(value);
    }
  }
}

// What outlives a longjmp out of the decoder: everything that owns memory is here, not on its
// stack.
struct JpegWork {
  JpegErrors errors;
  jpeg_decompress_struct jpeg{};
  std::vector<std::uint8_t> row;
  Picture picture;
  int orientation = 1;
  bool too_large = false;

  JpegWork() = default;
  JpegWork(const JpegWork&) = delete;
  JpegWork& operator=(const JpegWork&) = delete;
  ~JpegWork() { jpeg_destroy_decompress(&jpeg); }
};

// False: libjpeg gave up, errors.message says why.
bool run_jpeg(JpegWork& work, std::string_view bytes) {
  jpeg_decompress_struct& jpeg = work.jpeg;
  jpeg.err = jpeg_std_error(&work.errors.manager);
  work.errors.manager.error_exit = leave_jpeg;
  work.errors.manager.output_message = stay_silent;
  if (setjmp(work.errors.back) != 0) {  // NOLINT: see leave_jpeg
    return false;
  }
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, as_unsigned(bytes), bytes.size());
  jpeg_save_markers(&jpeg, JPEG_APP0 + 1, 0xFFFF);
  jpeg_read_header(&jpeg, TRUE);
  work.too_large = !size_is_sane(jpeg.image_width, jpeg.image_height);
  if (work.too_large) {
    return true;
  }
  const bool cmyk = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  jpeg.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
  work.orientation = orientation_of(jpeg);
  jpeg_start_decompress(&jpeg);
  const std::size_t width = jpeg.output_width;
  work.picture = {.width = static_cast<int>(jpeg.output_width),
                  .height = static_cast<int>(jpeg.output_height),
                  .pixels = std::vector<std::uint8_t>(width * jpeg.output_height * 3)};
  work.row.resize(cmyk ? width * 4 : 0);
  while (jpeg.output_scanline < jpeg.output_height) {
    std::uint8_t* target = work.picture.pixels.data() + jpeg.output_scanline * width * 3;
    JSAMPROW row = cmyk ? work.row.data() : target;
    jpeg_read_scanlines(&jpeg, &row, 1);
    if (cmyk) {
      cmyk_to_rgb(work.row, target);
    }
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

Result<Picture> decode_jpeg(std::string_view bytes, const std::string& name) {
  const auto work = std::make_unique<JpegWork>();
  if (!run_jpeg(*work, bytes)) {
    return undecodable(name, work->errors.message.data());
  }
  if (work->too_large) {
    return undecodable(name, "it is too large");
  }
  return turned_upright(work->picture, work->orientation);
}

Result<Picture> decode_other(std::string_view bytes, const std::string& name) {
  const int size = static_cast<int>(bytes.size());
  int width = 0;
  int height = 0;
  int channels = 0;
  if (stbi_info_from_memory(as_unsigned(bytes), size, &width, &height, &channels) == 0) {
    return undecodable(name, "it is no picture of a known kind");
  }
  if (!size_is_sane(width, height)) {
    return undecodable(name, "it is too large");
  }
  const auto release = [](unsigned char* pixels) { stbi_image_free(pixels); };
  const std::unique_ptr<unsigned char, decltype(release)> pixels(
      stbi_load_from_memory(as_unsigned(bytes), size, &width, &height, &channels, 3), release);
  if (!pixels) {
    return undecodable(name, stbi_failure_reason());
  }
  const std::size_t count = static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3;
  return Picture{.width = width,
                 .height = height,
                 .pixels = std::vector<std::uint8_t>(pixels.get(), pixels.get() + count)};
}

}  // namespace

Result<Picture> decode_picture(std::string_view bytes, const std::string& name) {
  if (bytes.size() > kMostFileBytes) {
    return undecodable(name, "it is too large");
  }
  return bytes.starts_with("\xFF\xD8") ? decode_jpeg(bytes, name) : decode_other(bytes, name);
}

Result<Picture> read_picture(const std::string& path) {
  const Result<std::string> bytes = os::read_whole_file(path, kMostFileBytes);
  if (!bytes) {
    return make_error(ErrorKind::kFailed, fmt::format("unable to read image file {}", path),
                      bytes.error().message);
  }
  return decode_picture(*bytes, path);
}

}  // namespace septet::measure
