/* Gauss-Newton on MuJoCo's Jacobians of sites, frame after frame, in C. */
#include <math.h>
#include <mujoco/mujoco.h>
#include <stdlib.h>
#include <string.h>

#define DAMPING 1e-9

static mjModel *model;
static mjData *data;

int load(const char *path) {
  model = mj_loadModel(path, 0);
  data = model ? mj_makeData(model) : 0;
  return data != 0;
}

/* J'J and J'r, row by row of J: a row has zeros for all that are no ancestors. */
static void normal_equations(const mjtNum *J, const mjtNum *r, int rows, int nv,
                             mjtNum *H, mjtNum *g) {
  memset(H, 0, nv * nv * sizeof(mjtNum));
  memset(g, 0, nv * sizeof(mjtNum));
  for (int k = 0; k < rows; k++) {
    const mjtNum *row = J + k * nv;
    for (int i = 0; i < nv; i++) {
      if (row[i] == 0) continue;
      g[i] += row[i] * r[k];
      for (int j = 0; j <= i; j++) H[i * nv + j] += row[i] * row[j];
    }
  }
  for (int i = 0; i < nv; i++) {
    H[i * nv + i] += DAMPING;
    for (int j = 0; j < i; j++) H[j * nv + i] = H[i * nv + j];
  }
}

void track(const double *points, const double *start, const int *sites, int n,
           int frames, int steps, int first_steps, double *found) {
  int nv = model->nv;
  mjtNum *J = malloc(3 * n * nv * sizeof(mjtNum));
  mjtNum *H = malloc(nv * nv * sizeof(mjtNum));
  mjtNum *r = malloc(3 * n * sizeof(mjtNum));
  mjtNum *g = malloc(nv * sizeof(mjtNum)), *dx = malloc(nv * sizeof(mjtNum));
  memcpy(data->qpos, start, model->nq * sizeof(mjtNum));
  for (int f = 0; f < frames; f++) {
    const double *target = points + 3 * n * f;
    int left = f == 0 ? first_steps : steps;
    for (; left > 0; left--) {
      mj_kinematics(model, data);
      mj_comPos(model, data);
      for (int k = 0; k < n; k++) {
        mj_jacSite(model, data, J + 3 * k * nv, 0, sites[k]);
        for (int x = 0; x < 3; x++)
          r[3 * k + x] = target[3 * k + x] - data->site_xpos[3 * sites[k] + x];
      }
      normal_equations(J, r, 3 * n, nv, H, g);
      mju_cholFactor(H, nv, 0);
      mju_cholSolve(dx, H, g, nv);
      mj_integratePos(model, data->qpos, dx, 1.0);
    }
    mj_kinematics(model, data);
    for (int k = 0; k < n; k++)
      memcpy(found + 3 * (n * f + k), data->site_xpos + 3 * sites[k],
             3 * sizeof(double));
  }
  free(J), free(H), free(r), free(g), free(dx);
}
