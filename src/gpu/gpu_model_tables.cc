// Written by tools/convert_gpu_models; do not edit by hand.
//
// enum, id, name, slices, max instances, MiB, {SM, CE, DEC, ENC, JPEG, OFA}, placements
#include "gpu/gpu_model_tables.h"

// clang-format off
namespace septet::gpu {
namespace {

constexpr ProfileRow kA100Sxm440gb[] = {
    {0, 19, "1g.5gb", 1, 7, 4864, {14, 1, 0, 0, 0, 0}, "0,1,2,3,4,5,6:1"},
    {7, 20, "1g.5gb+me", 1, 1, 4864, {14, 1, 1, 0, 1, 1}, "0,1,2,3,4,5,6:1"},
    {9, 15, "1g.10gb", 1, 4, 9856, {14, 1, 1, 0, 0, 0}, "0,2,4,6:2"},
    {1, 14, "2g.10gb", 2, 3, 9856, {28, 2, 1, 0, 0, 0}, "0,2,4:2"},
    {2, 9, "3g.20gb", 3, 2, 19968, {42, 3, 2, 0, 0, 0}, "0,4:4"},
    {3, 5, "4g.20gb", 4, 1, 19968, {56, 4, 2, 0, 0, 0}, "0:4"},
    {4, 0, "7g.40gb", 7, 1, 40192, {98, 7, 5, 0, 1, 1}, "0:8"},
};

constexpr ProfileRow kA100Sxm480gb[] = {
    {0, 19, "1g.10gb", 1, 7, 9856, {14, 1, 0, 0, 0, 0}, "0,1,2,3,4,5,6:1"},
    {7, 20, "1g.10gb+me", 1, 1, 9856, {14, 1, 1, 0, 1, 1}, "0,1,2,3,4,5,6:1"},
    {9, 15, "1g.20gb", 1, 4, 19968, {14, 1, 1, 0, 0, 0}, "0,2,4,6:2"},
    {1, 14, "2g.20gb", 2, 3, 19968, {28, 2, 1, 0, 0, 0}, "0,2,4:2"},
    {2, 9, "3g.40gb", 3, 2, 40192, {42, 3, 2, 0, 0, 0}, "0,4:4"},
    {3, 5, "4g.40gb", 4, 1, 40192, {56, 4, 2, 0, 0, 0}, "0:4"},
    {4, 0, "7g.80gb", 7, 1, 80384, {98, 7, 5, 0, 1, 1}, "0:8"},
};

constexpr ProfileRow kA30[] = {
    {0, 14, "1g.6gb", 1, 4, 5949, {14, 1, 1, 0, 0, 0}, "0,1,2,3:1"},
    {7, 21, "1g.6gb+me", 1, 1, 5949, {14, 1, 1, 0, 1, 1}, "0,1,2,3:1"},
    {1, 5, "2g.12gb", 2, 2, 11971, {28, 2, 2, 0, 0, 0}, "0,2:2"},
    {8, 6, "2g.12gb+me", 2, 1, 11971, {28, 2, 2, 0, 1, 1}, "0,2:2"},
    {3, 0, "4g.24gb", 4, 1, 24003, {56, 4, 4, 0, 1, 1}, "0:4"},
};

constexpr ProfileRow kH100Sxm580gb[] = {
    {0, 19, "1g.10gb", 1, 7, 9984, {16, 1, 1, 0, 1, 0}, "0,1,2,3,4,5,6:1"},
    {7, 20, "1g.10gb+me", 1, 1, 9984, {16, 1, 1, 0, 1, 1}, "0,1,2,3,4,5,6:1"},
    {9, 15, "1g.20gb", 1, 4, 20091, {26, 1, 1, 0, 1, 0}, "0,2,4,6:2"},
    {1, 14, "2g.20gb", 2, 3, 20091, {32, 2, 2, 0, 2, 0}, "0,2,4:2"},
    {2, 9, "3g.40gb", 3, 2, 40448, {60, 3, 3, 0, 3, 0}, "0,4:4"},
    {3, 5, "4g.40gb", 4, 1, 40448, {64, 4, 4, 0, 4, 0}, "0:4"},
    {4, 0, "7g.80gb", 7, 1, 81152, {132, 8, 7, 0, 7, 1}, "0:8"},
};

constexpr ProfileRow kH100Nvl94gb[] = {
    {0, 19, "1g.12gb", 1, 7, 10875, {16, 1, 1, 0, 1, 0}, "0,1,2,3,4,5,6:1"},
    {7, 20, "1g.12gb+me", 1, 1, 10875, {16, 1, 1, 0, 1, 1}, "0,1,2,3,4,5,6:1"},
    {9, 15, "1g.24gb", 1, 4, 22016, {26, 1, 1, 0, 1, 0}, "0,2,4,6:2"},
    {1, 14, "2g.24gb", 2, 3, 22016, {32, 2, 2, 0, 2, 0}, "0,2,4:2"},
    {2, 9, "3g.47gb", 3, 2, 47227, {60, 3, 3, 0, 3, 0}, "0,4:4"},
    {3, 5, "4g.47gb", 4, 1, 47227, {64, 4, 4, 0, 4, 0}, "0:4"},
    {4, 0, "7g.94gb", 7, 1, 94843, {132, 8, 7, 0, 7, 1}, "0:8"},
};

constexpr ProfileRow kGh20096gb[] = {
    {0, 19, "1g.12gb", 1, 7, 11904, {16, 1, 1, 0, 1, 0}, "0,1,2,3,4,5,6:1"},
    {7, 20, "1g.12gb+me", 1, 1, 11904, {16, 1, 1, 0, 1, 1}, "0,1,2,3,4,5,6:1"},
    {9, 15, "1g.24gb", 1, 4, 23936, {26, 1, 1, 0, 1, 0}, "0,2,4,6:2"},
    {1, 14, "2g.24gb", 2, 3, 23936, {32, 2, 2, 0, 2, 0}, "0,2,4:2"},
    {2, 9, "3g.48gb", 3, 2, 47872, {60, 3, 3, 0, 3, 0}, "0,4:4"},
    {3, 5, "4g.48gb", 4, 1, 47872, {64, 4, 4, 0, 4, 0}, "0:4"},
    {4, 0, "7g.96gb", 7, 1, 95872, {132, 8, 7, 0, 7, 1}, "0:8"},
};

constexpr ProfileRow kH200[] = {
    {0, 19, "1g.18gb", 1, 7, 16384, {16, 1, 1, 0, 1, 0}, "0,1,2,3,4,5,6:1"},
    {7, 20, "1g.18gb+me", 1, 1, 16384, {16, 1, 1, 0, 1, 1}, "0,1,2,3,4,5,6:1"},
    {9, 15, "1g.35gb", 1, 4, 33280, {26, 1, 1, 0, 1, 0}, "0,2,4,6:2"},
    {1, 14, "2g.35gb", 2, 3, 33280, {32, 2, 2, 0, 2, 0}, "0,2,4:2"},
    {2, 9, "3g.71gb", 3, 2, 71424, {60, 3, 3, 0, 3, 0}, "0,4:4"},
    {3, 5, "4g.71gb", 4, 1, 71424, {64, 4, 4, 0, 4, 0}, "0:4"},
    {4, 0, "7g.141gb", 7, 1, 143360, {132, 8, 7, 0, 7, 1}, "0:8"},
};

constexpr ProfileRow kGh200144gb[] = {
    {0, 19, "1g.18gb", 1, 7, 17920, {16, 1, 1, 0, 1, 0}, "0,1,2,3,4,5,6:1"},
    {7, 20, "1g.18gb+me", 1, 1, 17920, {16, 1, 1, 0, 1, 1}, "0,1,2,3,4,5,6:1"},
    {9, 15, "1g.36gb", 1, 4, 36096, {26, 1, 1, 0, 1, 0}, "0,2,4,6:2"},
    {1, 14, "2g.36gb", 2, 3, 36096, {32, 2, 2, 0, 2, 0}, "0,2,4:2"},
    {2, 9, "3g.72gb", 3, 2, 71936, {60, 3, 3, 0, 3, 0}, "0,4:4"},
    {3, 5, "4g.72gb", 4, 1, 71936, {64, 4, 4, 0, 4, 0}, "0:4"},
    {4, 0, "7g.144gb", 7, 1, 143872, {132, 8, 7, 0, 7, 1}, "0:8"},
};

constexpr ProfileRow kB200[] = {
    {0, 19, "1g.23gb", 1, 7, 20992, {18, 2, 1, 0, 1, 0}, "0,1,2,3,4,5,6:1"},
    {7, 20, "1g.23gb+me", 1, 1, 20992, {18, 2, 1, 0, 1, 1}, "0,1,2,3,4,5,6:1"},
    {9, 15, "1g.45gb", 1, 4, 45312, {30, 2, 1, 0, 1, 0}, "0,2,4,6:2"},
    {1, 14, "2g.45gb", 2, 3, 45312, {36, 4, 2, 0, 2, 0}, "0,2,4:2"},
    {2, 9, "3g.90gb", 3, 2, 89728, {54, 6, 3, 0, 3, 0}, "0,4:4"},
    {3, 5, "4g.90gb", 4, 1, 89728, {72, 8, 4, 0, 4, 0}, "0:4"},
    {4, 0, "7g.180gb", 7, 1, 179584, {126, 16, 7, 0, 7, 1}, "0:8"},
};

constexpr ProfileRow kGb200[] = {
    {0, 19, "1g.23gb", 1, 7, 22528, {18, 2, 1, 0, 1, 0}, "0,1,2,3,4,5,6:1"},
    {7, 20, "1g.23gb+me", 1, 1, 22528, {18, 2, 1, 0, 1, 1}, "0,1,2,3,4,5,6:1"},
    {9, 15, "1g.47gb", 1, 4, 46592, {32, 2, 1, 0, 1, 0}, "0,2,4,6:2"},
    {1, 14, "2g.47gb", 2, 3, 46592, {38, 4, 2, 0, 2, 0}, "0,2,4:2"},
    {2, 9, "3g.93gb", 3, 2, 92800, {54, 6, 3, 0, 3, 0}, "0,4:4"},
    {3, 5, "4g.93gb", 4, 1, 92800, {72, 8, 4, 0, 4, 0}, "0:4"},
    {4, 0, "7g.186gb", 7, 1, 185600, {126, 16, 7, 0, 7, 1}, "0:8"},
};

constexpr ProfileRow kRtxPro6000[] = {
    {0, 14, "1g.24gb", 1, 4, 24192, {46, 1, 1, 1, 1, 0}, "0,3,6,9:3"},
    {7, 21, "1g.24gb+me", 1, 1, 24192, {46, 1, 1, 1, 1, 1}, "0,3,6,9:3"},
    {10, 47, "1g.24gb+gfx", 1, 4, 24192, {46, 1, 1, 1, 1, 0}, "0,3,6,9:3"},
    {13, 67, "1g.24gb-me", 1, 4, 24192, {46, 1, 0, 0, 0, 0}, "0,3,6,9:3"},
    {15, 65, "1g.24gb+me.all", 1, 1, 24192, {46, 1, 4, 4, 4, 1}, "0,3,6,9:3"},
    {1, 5, "2g.48gb", 2, 2, 48517, {94, 2, 2, 2, 2, 0}, "0,6:6"},
    {11, 35, "2g.48gb+gfx", 2, 2, 48517, {94, 2, 2, 2, 2, 0}, "0,6:6"},
    {14, 66, "2g.48gb-me", 2, 2, 48517, {94, 2, 0, 0, 0, 0}, "0,6:6"},
    {16, 64, "2g.48gb+me.all", 2, 1, 48517, {94, 2, 4, 4, 4, 1}, "0,6:6"},
    {3, 0, "4g.96gb", 4, 1, 97403, {188, 4, 4, 4, 4, 1}, "0:12"},
    {12, 32, "4g.96gb+gfx", 4, 1, 97403, {188, 4, 4, 4, 4, 1}, "0:12"},
};

constexpr ModelRow kModels[] = {
    {"A100-SXM4-40GB", "A100-40GB", "GA100", GpuArchitecture::kAmpere,
     "NVIDIA A100-SXM4-40GB|NVIDIA A100-PCIE-40GB|NVIDIA A800 40GB",
     "20B010DE|20B110DE|20F110DE|20F610DE",
     8, 0, 40960, 8, 7, {true, true, true},
     GpuInstanceIdMap::kHalvesSwapped, false, 450,
     "documented",
     kA100Sxm440gb},
    {"A100-SXM4-80GB", "A100-80GB", "GA100", GpuArchitecture::kAmpere,
     "NVIDIA A100-SXM4-80GB|NVIDIA A100 80GB PCIe|NVIDIA A800 80GB",
     "20B210DE|20B510DE|20F310DE|20F510DE",
     8, 0, 81920, 8, 7, {true, true, true},
     GpuInstanceIdMap::kHalvesSwapped, false, 450,
     "documented",
     kA100Sxm480gb},
    {"A30", "A30-24GB", "GA100", GpuArchitecture::kAmpere,
     "NVIDIA A30",
     "20B710DE",
     8, 0, 24576, 4, 4, {true, true, true},
     GpuInstanceIdMap::kIdentity, false, 460,
     "documented; numbering of GPU instances unknown",
     kA30},
    {"H100-SXM5-80GB", "H100-80GB", "GH100", GpuArchitecture::kHopper,
     "NVIDIA H100 80GB HBM3|NVIDIA H100 PCIe|NVIDIA H800",
     "233010DE|233110DE|232210DE|232410DE",
     9, 0, 81559, 8, 7, {true, false, false},
     GpuInstanceIdMap::kIdentity, true, 525,
     "documented",
     kH100Sxm580gb},
    {"H100-NVL-94GB", "H100-94GB-NVL", "GH100", GpuArchitecture::kHopper,
     "NVIDIA H100 NVL|NVIDIA H800 NVL",
     "232110DE|233A10DE",
     9, 0, 95830, 8, 7, {true, false, false},
     GpuInstanceIdMap::kIdentity, true, 525,
     "documented",
     kH100Nvl94gb},
    {"GH200-96GB", "H100-96GB-GH200", "GH100", GpuArchitecture::kHopper,
     "NVIDIA GH200 480GB",
     "234210DE|233D10DE|20B610DE|232910DE",
     9, 0, 97871, 8, 7, {true, false, false},
     GpuInstanceIdMap::kIdentity, true, 525,
     "documented names and ids, other fields partly inferred; estimated: memory, total memory",
     kGh20096gb},
    {"H200", "H200-141GB", "GH100", GpuArchitecture::kHopper,
     "NVIDIA H200|NVIDIA H200 NVL",
     "233510DE|233B10DE",
     9, 0, 143771, 8, 7, {true, false, false},
     GpuInstanceIdMap::kIdentity, true, 550,
     "measured",
     kH200},
    {"GH200-144GB", "GH200-144GB", "GH100", GpuArchitecture::kHopper,
     "NVIDIA GH200 144G HBM3e",
     "234810DE",
     9, 0, 146831, 8, 7, {true, false, false},
     GpuInstanceIdMap::kIdentity, true, 0,
     "documented names and ids, other fields partly inferred; estimated: memory, total memory",
     kGh200144gb},
    {"B200", "B200", "GB100", GpuArchitecture::kBlackwell,
     "NVIDIA B200",
     "290110DE",
     10, 0, 183359, 8, 7, {true, false, false},
     GpuInstanceIdMap::kIdentity, false, 570,
     "documented names and ids, other fields partly inferred; estimated: engines, memory, multiprocessors, total memory; numbering of GPU instances unknown",
     kB200},
    {"GB200", "GB200", "GB100", GpuArchitecture::kBlackwell,
     "NVIDIA GB200",
     "294110DE",
     10, 0, 189471, 8, 7, {true, false, false},
     GpuInstanceIdMap::kIdentity, false, 570,
     "documented names and ids, other fields partly inferred; estimated: engines, memory, multiprocessors, total memory; numbering of GPU instances unknown",
     kGb200},
    {"RTX-PRO-6000", "RTX-PRO-6000-Blackwell", "GB202", GpuArchitecture::kBlackwell,
     "NVIDIA RTX PRO 6000 Blackwell Server Edition|NVIDIA RTX PRO 6000 Blackwell Workstation Edition|NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
     "2BB510DE",
     12, 0, 97887, 12, 4, {true, false, false},
     GpuInstanceIdMap::kRunning, false, 575,
     "documented; numbering of GPU instances unknown",
     kRtxPro6000},
    {"T4", "T4", "TU104", GpuArchitecture::kTuring,
     "Tesla T4",
     "1EB810DE",
     7, 5, 15360, 0, 0, {false, false, false},
     GpuInstanceIdMap::kIdentity, false, 0,
     "published; no MIG",
     {}},
    {"L40S", "L40S", "AD102", GpuArchitecture::kAda,
     "NVIDIA L40S",
     "26B910DE",
     8, 9, 46068, 0, 0, {false, false, false},
     GpuInstanceIdMap::kIdentity, false, 0,
     "published; no MIG",
     {}},
};

}  // namespace

std::span<const ModelRow> gpu_model_rows() { return kModels; }

}  // namespace septet::gpu
// clang-format on
