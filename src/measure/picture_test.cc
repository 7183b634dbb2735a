#include "measure/picture.h"

#include <gmock/gmock.h>
#include <openssl/evp.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace septet::measure {
namespace {

using inference::Datatype;
using testing::ElementsAre;

// The folder with the oracles of the official client, or empty.
std::filesystem::path oracle_folder() {
  const char* shared = std::getenv("SEPTET_SHARED");
  const std::filesystem::path base =
      shared != nullptr ? shared : std::filesystem::path(SEPTET_SOURCE_DIR) / ".." / "shared";
  return base / "data" / "protocol";
}

std::string unzipped(const std::filesystem::path& file) {
  std::string out;
  FILE* pipe = ::popen(("gzip -dc '" + file.string() + "'").c_str(), "r");
  char part[65536];
  while (const std::size_t size = std::fread(part, 1, sizeof part, pipe)) {
    out.append(part, size);
  }
  ::pclose(pipe);
  return out;
}

// "P6 width height 255" and the pixels.
Picture read_ppm(const std::string& file) {
  Picture picture;
  int consumed = 0;
  EXPECT_EQ(std::sscanf(file.c_str(), "P6 %d %d 255%n", &picture.width, &picture.height, &consumed),
            2);
  const std::string pixels = file.substr(static_cast<std::size_t>(consumed) + 1);
  picture.pixels.assign(pixels.begin(), pixels.end());
  return picture;
}

std::string md5(const std::vector<std::byte>& bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_md5(), nullptr);
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", digest[i]);
    text += two;
  }
  return text;
}

struct Oracle {
  const char* name;
  const char* none;
  const char* inception;
  const char* vgg;
};

class OraclePicture : public testing::TestWithParam<Oracle> {};

TEST_P(OraclePicture, BecomesTheOfficialClientsBytes) {
  const std::string stem = std::string("preprocess_") + GetParam().name;
  const auto file = oracle_folder() / (stem + ".ppm.gz");
  if (!std::filesystem::exists(file)) {
    GTEST_SKIP() << "no oracle pictures in " << oracle_folder();
  }
  const Picture picture = read_ppm(unzipped(file));
  const std::string expected_rgb = unzipped(oracle_folder() / (stem + ".none_rgb8.gz"));
  const ImageInput input{.width = 224, .height = 224};

  const Picture small = resized(picture, 224, 224);

  EXPECT_EQ(std::string(small.pixels.begin(), small.pixels.end()), expected_rgb);
  EXPECT_EQ(md5(preprocess(picture, input, Scaling::kNone).value()), GetParam().none);
  EXPECT_EQ(md5(preprocess(picture, input, Scaling::kInception).value()), GetParam().inception);
  EXPECT_EQ(md5(preprocess(picture, input, Scaling::kVgg).value()), GetParam().vgg);
}

INSTANTIATE_TEST_SUITE_P(
    All, OraclePicture,
    testing::Values(Oracle{"down", "4e72f2781aa99d5036d9eadf05fb47d0",
                           "7562fea2cae7e213a294656f17a23af5", "74ab2d56c52fc530d03692a1864eda45"},
                    Oracle{"up", "5f33ce5572a76f66191a7073fc9252c2",
                           "ac4ce4230b4da086bc786aec8bba8800", "6bc3733448dadd255b9c8467b0dcd841"},
                    Oracle{"same", "cf1e3d024760134fc925395ec4354526",
                           "a559f9cea907abaf8e60b4febd7ab61e", "62c580212015d3b9bdb34908f2d718e3"}),
    [](const auto& oracle) { return std::string(oracle.param.name); });

template <typename T>
std::vector<T> values_of(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Two pixels: (255, 0, 10) and (128, 20, 30).
const Picture kTwo{.width = 2, .height = 1, .pixels = {255, 0, 10, 128, 20, 30}};

template <typename T>
std::vector<T> two_as(Datatype datatype, Scaling scaling, PixelLayout layout = PixelLayout::kNhwc) {
  const ImageInput input{.datatype = datatype, .layout = layout, .width = 2, .height = 1};
  return values_of<T>(preprocess(kTwo, input, scaling).value());
}

TEST(Preprocess, PutsPlanesOrPixelsFirst) {
  EXPECT_THAT(two_as<std::uint8_t>(Datatype::kUint8, Scaling::kNone),
              ElementsAre(255, 0, 10, 128, 20, 30));
  EXPECT_THAT(two_as<std::uint8_t>(Datatype::kUint8, Scaling::kNone, PixelLayout::kNchw),
              ElementsAre(255, 128, 0, 20, 10, 30));
}

TEST(Preprocess, SaturatesWholeNumbers) {
  EXPECT_THAT(two_as<std::int8_t>(Datatype::kInt8, Scaling::kNone),
              ElementsAre(127, 0, 10, 127, 20, 30));
  EXPECT_THAT(two_as<std::uint8_t>(Datatype::kUint8, Scaling::kVgg),
              ElementsAre(132, 0, 0, 5, 0, 0));
  EXPECT_THAT(two_as<std::int16_t>(Datatype::kInt16, Scaling::kVgg),
              ElementsAre(132, -117, -94, 5, -97, -74));
  EXPECT_THAT(two_as<std::int32_t>(Datatype::kInt32, Scaling::kInception),
              ElementsAre(1, -1, -1, 0, -1, -1));
}

TEST(Preprocess, WritesEveryFloatingPointType) {
  EXPECT_THAT(two_as<double>(Datatype::kFp64, Scaling::kVgg),
              ElementsAre(132, -117, -94, 5, -97, -74));
  // 132 = 1.03125 x 2^7, -117 = -1.828125 x 2^6.
  EXPECT_THAT(two_as<std::uint16_t>(Datatype::kFp16, Scaling::kVgg).at(0), 0x5820);
  EXPECT_THAT(two_as<std::uint16_t>(Datatype::kFp16, Scaling::kVgg).at(1), 0xD750);
  EXPECT_THAT(two_as<std::uint16_t>(Datatype::kBf16, Scaling::kVgg).at(0), 0x4304);
  EXPECT_THAT(two_as<std::uint16_t>(Datatype::kFp16, Scaling::kInception).at(0), 0x3C00);
}

TEST(Preprocess, RoundsHalfPrecisionToTheNearest) {
  for (int value = 0; value < 256; ++value) {
    const auto pixel = static_cast<std::uint8_t>(value);
    const Picture one{.width = 1, .height = 1, .channels = 3, .pixels = {pixel, pixel, pixel}};
    const ImageInput input{.datatype = Datatype::kFp16, .width = 1, .height = 1};

    const auto half =
        values_of<std::uint16_t>(preprocess(one, input, Scaling::kInception).value()).at(0);

    // Reads the half back and compares: an error above half a unit in the last place is wrong.
    const int exponent = (half >> 10) & 0x1F;
    const double read = std::ldexp((half & 0x3FF) + (exponent == 0 ? 0 : 1024),
                                   (exponent == 0 ? 1 : exponent) - 25) *
                        ((half & 0x8000) != 0 ? -1 : 1);
    const double exact = static_cast<float>(value * (1 / 127.5)) - 1.0F;
    EXPECT_NEAR(read, exact, std::ldexp(0.5, std::max(exponent, 1) - 25) * (1 + 1e-6)) << value;
  }
}

TEST(Preprocess, RefusesWhatIsNoPicture) {
  for (const Datatype datatype : {Datatype::kBool, Datatype::kBytes}) {
    const auto bytes =
        preprocess(kTwo, {.datatype = datatype, .width = 2, .height = 1}, Scaling::kNone);

    EXPECT_FALSE(bytes.ok());
  }
}

TEST(Grey, WeighsColoursAsOpenCvDoes) {
  const Picture colours{
      .width = 4, .height = 1, .pixels = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255}};

  EXPECT_THAT(to_grey(colours).pixels, ElementsAre(76, 150, 29, 255));
}

TEST(TurnedUpright, UndoesEachExifOrientation) {
  // Upright:  1 2 3      Stored as the camera would for each orientation.
  //           4 5 6
  const Picture upright{.width = 3, .height = 2, .channels = 1, .pixels = {1, 2, 3, 4, 5, 6}};
  const std::vector<std::pair<int, Picture>> stored = {
      {1, {.width = 3, .height = 2, .channels = 1, .pixels = {1, 2, 3, 4, 5, 6}}},
      {2, {.width = 3, .height = 2, .channels = 1, .pixels = {3, 2, 1, 6, 5, 4}}},
      {3, {.width = 3, .height = 2, .channels = 1, .pixels = {6, 5, 4, 3, 2, 1}}},
      {4, {.width = 3, .height = 2, .channels = 1, .pixels = {4, 5, 6, 1, 2, 3}}},
      {5, {.width = 2, .height = 3, .channels = 1, .pixels = {1, 4, 2, 5, 3, 6}}},
      {6, {.width = 2, .height = 3, .channels = 1, .pixels = {3, 6, 2, 5, 1, 4}}},
      {7, {.width = 2, .height = 3, .channels = 1, .pixels = {6, 3, 5, 2, 4, 1}}},
      {8, {.width = 2, .height = 3, .channels = 1, .pixels = {4, 1, 5, 2, 6, 3}}},
      {9, {.width = 3, .height = 2, .channels = 1, .pixels = {1, 2, 3, 4, 5, 6}}},
  };
  for (const auto& [orientation, picture] : stored) {
    EXPECT_EQ(turned_upright(picture, orientation), upright) << orientation;
  }
}

TEST(Resized, KeepsAFlatPictureFlat) {
  const Picture flat{
      .width = 5, .height = 3, .channels = 1, .pixels = std::vector<std::uint8_t>(15, 200)};

  const Picture large = resized(flat, 17, 11);

  EXPECT_THAT(large.pixels, testing::Each(200));
  EXPECT_EQ(large.pixels.size(), 17U * 11U);
}

TEST(Resized, HandlesASinglePixel) {
  const Picture one{.width = 1, .height = 1, .pixels = {1, 2, 3}};

  EXPECT_THAT(resized(one, 2, 1).pixels, ElementsAre(1, 2, 3, 1, 2, 3));
}

}  // namespace
}  // namespace septet::measure
