// @ts-check
// Paints the flow view on a canvas.

/** @import { Look, Scene } from "./types.js" */

/**
 * Paint what is in view: `top` is how far it is scrolled, `height` what is seen.
 * @param {CanvasRenderingContext2D} context
 * @param {Scene} drawn
 * @param {Look} look
 * @param {number} top
 * @param {number} height
 */
export function paintCanvas(context, drawn, look, top, height) {
  context.lineWidth = look.line;
  context.lineCap = "butt";
  for (const line of drawn.lines) {
    const [y0, y1] = [line.y0 - top, line.y1 - top];
    if ((y0 < 0 && y1 < 0) || (y0 > height && y1 > height)) continue;
    const bend = (line.x1 - line.x0) * 0.4;
    context.globalAlpha = line.alpha;
    context.strokeStyle = look.colours[line.head];
    context.beginPath();
    context.moveTo(line.x0, y0);
    context.bezierCurveTo(line.x0 + bend, y0, line.x1 - bend, y1, line.x1, y1);
    context.stroke();
  }
  for (const block of drawn.blocks) {
    const y = block.y - top;
    if (y + block.height < 0 || y > height) continue;
    context.globalAlpha = 1;
    context.fillStyle = look.faint;
    context.fillRect(block.x, y, block.width, block.height);
    context.globalAlpha = block.alpha;
    context.fillStyle = look.colours[block.head];
    context.fillRect(block.x, y, block.width, block.height);
  }
  context.globalAlpha = 1;
}
