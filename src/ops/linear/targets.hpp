// SPDX-License-Identifier: Apache-2.0
#pragma once

// Comes before any of Highway's headers. The products are compiled for the instruction sets that differ for them: SSE4,
// AVX2 and AVX-512 with VNNI on x86, and for none in particular. An AVX-512 machine without VNNI does best with AVX2.
#define HWY_WANT_AVX3_DL
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3)
// Without vector instructions, vectors are emulated, not single lanes: a lane is a row here, four to a vector at least.
// Highway avoids that before g++ 12.3 for a miscompiled multiplication (MulHigh) that isn't used here.
#define HWY_BROKEN_EMU128 0
